package sparsetable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/invariants"
)

// Snapshot implements Table.
func (t *ssd) Snapshot(ctx context.Context, record []byte) (*PendingSnapshot, error) {
	if t.readOnly {
		return nil, ErrReadOnly
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	if err := acquire(ctx, t.saving); err != nil {
		t.leave()
		return nil, err
	}
	err := t.failure()
	var s *checkpoint.Snapshot
	if err == nil {
		s, err = t.checkpoints.Fix(ctx, record)
	}
	if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil { // compaction may make room
		t.files.AwaitDeletions()
		s, err = t.checkpoints.Fix(ctx, record)
	}
	if err != nil {
		<-t.saving
		t.leave()
		return nil, t.snapshotError(err)
	}
	p := &PendingSnapshot{done: make(chan struct{})}
	panics.Go("writing a snapshot of the table", func() { // Close waits for it, because leave comes at its end
		committed, err := s.Write(ctx)
		if p.err = t.snapshotError(err); err == nil {
			p.info = t.infoOf(committed)
			if t.opts.SSD.DirBudgetBytes > 0 {
				t.wake() // the directory may be nearly full now, so that files must be emptied
			}
		}
		<-t.saving
		close(p.done)
		t.leave()
	})
	return p, nil
}

func (t *ssd) snapshotError(err error) error { return tableError(fullDisk(err, t.devices[0])) }

func (t *ssd) infoOf(s catalog.Snapshot) SnapshotInfo {
	s = checkpoint.Upgraded(s)
	return SnapshotInfo{ID: s.ID, Rows: s.Rows, Bytes: checkpoint.WrittenBytes(s), Layout: t.layout, Record: bytes.Clone(s.Record)}
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
	err := t.checkpoints.Drop(id)
	t.wake()
	return tableError(err)
}

// snapshotted is what snapshots see of the table; it implements checkpoint.Table.
type snapshotted struct{ *ssd }

// BlockWrites implements checkpoint.Table.
func (t snapshotted) BlockWrites(fn func(storedRows int64) error) error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if invariants.Enabled {
		t.checkTable()
	}
	return fn(t.rewrite.stored)
}

// BlockReleases implements checkpoint.Table.
func (t snapshotted) BlockReleases(fn func(updatable iter.Seq[[]uint32]) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fn(func(yield func(refs []uint32) bool) {
		for _, ws := range t.mu.live {
			if ws.mode == PullCreate && !ws.unchanged && !yield(ws.refs) {
				return
			}
		}
	})
}

// MakeRoom implements checkpoint.Table.
func (t snapshotted) MakeRoom(ctx context.Context, size func() int64, granted func()) (bool, error) {
	err := t.inSteps(ctx, func() error {
		err := t.reserve(size())
		if errors.Is(err, bucketfile.ErrNoSpace) {
			return errNoVictims // dirty rows cannot leave, so no room can be made
		}
		if err == nil {
			granted()
		}
		return err
	})
	if errors.Is(err, errNoVictims) {
		return false, nil
	}
	return err == nil, err
}

// GiveRoom implements checkpoint.Table.
func (t snapshotted) GiveRoom() error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.giveCache()
}

// PutCounters implements checkpoint.Table.
func (t snapshotted) PutCounters(counters map[string]int64) {
	life := t.lifetime()
	for _, c := range lifeCounters {
		counters[c.name] = *c.of(&life)
	}
}
