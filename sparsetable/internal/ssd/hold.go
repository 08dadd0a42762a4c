package ssd

import (
	"errors"
	"io"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/transfer"
)

// HoldSnapshot implements sparsetable.SnapshotHolder.
func (t *Table) HoldSnapshot(id uint64) (*transfer.SnapshotFiles, error) {
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	kept, err := t.checkpoints.Keep(id)
	if err != nil {
		return nil, apierr.Of(err)
	}
	files, err := transfer.FilesOf(kept.Snapshot(), t.tableID, t.dirs.Names)
	if err != nil {
		return nil, errors.Join(err, kept.Release())
	}
	index := func(w io.Writer, since uint64) error {
		if err := t.inFlight.Begin(); err != nil {
			return err
		}
		defer t.inFlight.End()
		return apierr.Of(kept.WriteIndex(w, since))
	}
	return &transfer.SnapshotFiles{Files: files, WriteIndex: index, Release: kept.Release}, nil
}
