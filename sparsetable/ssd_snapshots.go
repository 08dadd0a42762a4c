package sparsetable

import (
	"bytes"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/catalog"
)

func (t *ssd) infoOf(s catalog.Snapshot) SnapshotInfo {
	s = withDeltas(s)
	info := SnapshotInfo{ID: s.ID, Rows: s.Rows, Bytes: s.PageBytes, Layout: t.layout, Record: bytes.Clone(s.Record)}
	for _, d := range s.Deltas {
		if d.Snapshot == s.ID {
			info.Bytes += d.Bytes
		}
	}
	return info
}

// Snapshots implements Table.
func (t *ssd) Snapshots() ([]SnapshotInfo, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	var infos []SnapshotInfo
	for _, s := range t.catalog.Snapshots() {
		infos = append(infos, t.infoOf(s))
	}
	return infos, nil
}

// DropSnapshot implements Table.
func (t *ssd) DropSnapshot(id uint64) error {
	if t.readOnly {
		return ErrReadOnly
	}
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	if id == 0 {
		return fmt.Errorf("%w: 0", ErrNoSnapshot)
	}
	s, err := t.catalog.Snapshot(id)
	if err == nil {
		err = t.catalog.Drop(id)
	}
	if err != nil {
		return tableError(err)
	}
	err = errors.Join(t.files.Unhold(id), t.deleteUnused(s.Deltas))
	t.wake()
	return err
}
