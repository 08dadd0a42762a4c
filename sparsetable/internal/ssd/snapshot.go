package ssd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/invariants"
)

// Snapshot implements Table.
func (t *Table) Snapshot(ctx context.Context, record []byte) (*contract.PendingSnapshot, error) {
	if t.opts.ReadOnly {
		return nil, contract.ErrReadOnly
	}
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	if err := t.saving.Acquire(ctx); err != nil {
		t.inFlight.End()
		return nil, err
	}
	err := t.failure()
	var s *checkpoint.Snapshot
	if err == nil {
		s, err = t.checkpoints.Fix(record)
	}
	if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil { // compaction may make room
		t.files.AwaitDeletions()
		s, err = t.checkpoints.Fix(record)
	}
	if err != nil {
		t.saving.Release()
		t.inFlight.End()
		return nil, t.snapshotError(err)
	}
	p, end := contract.NewPendingSnapshot()
	panics.Go("writing a snapshot of the table", func() { // Close waits for it because its last act is to end its call
		committed, err := s.Write(ctx)
		var info contract.SnapshotInfo
		if err == nil {
			info = t.infoOf(committed)
			if t.opts.DirBudgetBytes > 0 {
				t.wake() // the directory may be nearly full now and files may have to be emptied
			}
		}
		t.saving.Release()
		end(info, t.snapshotError(err))
		t.inFlight.End()
	})
	return p, nil
}

func (t *Table) snapshotError(err error) error {
	return apierr.Of(apierr.FullDisk(err, t.dirs.Devices[0]))
}

func (t *Table) infoOf(s catalog.Snapshot) contract.SnapshotInfo {
	s = checkpoint.Upgraded(s)
	return contract.SnapshotInfo{ID: s.ID, Rows: s.Rows, Bytes: checkpoint.WrittenBytes(s), Layout: t.layout, Record: bytes.Clone(s.Record)}
}

// Snapshots implements Table.
func (t *Table) Snapshots() ([]contract.SnapshotInfo, error) {
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	var infos []contract.SnapshotInfo
	for _, s := range t.catalog.Snapshots() {
		infos = append(infos, t.infoOf(s))
	}
	return infos, nil
}

// DropSnapshot implements Table.
func (t *Table) DropSnapshot(id uint64) error {
	if t.opts.ReadOnly {
		return contract.ErrReadOnly
	}
	if err := t.inFlight.Begin(); err != nil {
		return err
	}
	defer t.inFlight.End()
	if id == 0 {
		return fmt.Errorf("%w: 0", contract.ErrNoSnapshot)
	}
	err := t.checkpoints.Drop(id)
	t.wake()
	return apierr.Of(err)
}

// snapshotted is a snapshot's view of the table; it implements checkpoint.Table.
type snapshotted struct{ *Table }

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
func (t snapshotted) BlockReleases(fn func(updatable iter.Seq[[]uint32], training bool) error) error {
	t.sets.Lock()
	defer t.sets.Unlock()
	training := len(t.sets.live)+t.elevator.Announced() > 0
	return fn(func(yield func(refs []uint32) bool) {
		for _, ws := range t.sets.live {
			if ws.mode == contract.PullCreate && !ws.unchanged && !yield(ws.refs) {
				return
			}
		}
	}, training)
}

// TakeMemory implements checkpoint.Table.
func (t snapshotted) TakeMemory(size func() int64, granted func()) (bool, error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	limit, st := t.cacheLimit(size()), t.cache.Stats()
	fit := t.fitIn(limit)
	if crowded := st.Rows > fit/16*sweepFrom; crowded || st.Bytes > limit || t.limitCache(limit) != nil {
		return false, nil // rows would have to be written in order to be evicted
	}
	if t.cache.Stats().Bytes > limit { // the cache has grown meanwhile
		return false, t.giveCache()
	}
	granted()
	return true, nil
}

// ReleaseMemory implements checkpoint.Table.
func (t snapshotted) ReleaseMemory() error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.giveCache()
}

// PutCounters implements checkpoint.Table.
func (t snapshotted) PutCounters(counters map[string]int64) {
	life := t.lifetime(t.openStats())
	life.PutLife(counters)
}
