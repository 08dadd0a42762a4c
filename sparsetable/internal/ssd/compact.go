package ssd

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/invariants"
)

// keepSpace compacts files until the space on disk is within its bounds, if enough buckets were
// written since the last check. Code that writes buckets calls it after every step, so that the
// bounds hold however fast the table is written. The call takes about as long as the step did.
// REQUIRES: rewrite is not held.
func (t *Table) keepSpace(ctx context.Context) error {
	if t.uncheckedBytes.Load() < int64(t.plan.BufferBytes) {
		return nil
	}
	t.uncheckedBytes.Store(0)
	if err := t.compact(ctx); err != nil && !errors.Is(err, bucketfile.ErrNoSpace) {
		return err
	}
	return nil // if there is no room to move buckets, the next write returns the error
}

// compact empties files until the space on disk is within its bounds.
func (t *Table) compact(ctx context.Context) error {
	if t.opts.ReadOnly {
		return nil
	}
	last := uint32(0) // no file's number
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		file, err := t.compactOne(ctx)
		if err != nil || file == 0 {
			return err
		}
		if file == last {
			// It was read to its end without an error but still counts live buckets.
			t.opts.Logger.Warn("sparsetable: a bucket file is not deleted: it counts live buckets, but the index refers to none of them", "file", file)
			return nil
		}
		last = file
	}
}

// compactOne moves the live buckets out of one file, if that is necessary, and returns the file's
// number, else 0. A file that snapshots hold is deleted only once these are dropped. Only one file
// is emptied at a time, because reading it takes memory.
func (t *Table) compactOne(ctx context.Context) (file uint32, err error) {
	if err := t.rewrite.compacting.Acquire(ctx); err != nil {
		return 0, err
	}
	defer t.rewrite.compacting.Release()
	t.indexMu.RLock()
	step := t.stepBytes()
	t.indexMu.RUnlock()
	c, ok := t.space.Worst(step)
	if !ok {
		return 0, nil
	}
	err = t.emptyFile(ctx, c.File)
	if invariants.Enabled {
		t.rewrite.Lock()
		defer t.rewrite.Unlock() // even if the check panics
		t.checkTable()
	}
	return c.File, err
}

// emptyFile moves the live buckets of a file to another file. If the file is damaged or has a bad
// sector, it reads the buckets that the scan did not reach one by one. So the error names the slot
// of a damaged bucket, and damage outside live buckets is no error.
func (t *Table) emptyFile(ctx context.Context, file uint32) error {
	err := t.files.ScanFile(ctx, file, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		if !t.index.LiesAt(b.Slot, uint64(loc)) {
			return nil // superseded
		}
		return t.moveBucket(loc, b)
	})
	switch {
	case errors.Is(err, bucketfile.ErrUnknownFile):
		return nil // it was deleted meanwhile
	case errors.Is(err, bucketfile.ErrCorrupt), errors.Is(err, bucketfile.ErrUnreadable):
		t.opts.Logger.Warn("sparsetable: a bucket file is damaged; its live buckets are moved to another file", "error", err)
		return t.emptyRest(ctx, file)
	}
	return err
}

// emptyRest moves the buckets that are still in a file, slot by slot.
func (t *Table) emptyRest(ctx context.Context, file uint32) error {
	for slot, end := uint32(0), false; !end; {
		err := ctx.Err()
		if err == nil {
			t.rewrite.Lock()
			slot, end, err = t.bucketsIn(file, slot, func(slot uint32, b *bucketfile.Bucket) error {
				return t.moveBucket(bucketfile.Location(t.index.Location(slot)), b)
			})
			t.rewrite.Unlock()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucketsIn calls fn for the buckets that lie in file, for a range of slots that begins at slot. It
// returns the slot to continue with and whether that is the end of the index. REQUIRES: rewrite is
// held.
func (t *Table) bucketsIn(file, slot uint32, fn func(slot uint32, b *bucketfile.Bucket) error) (next uint32, end bool, err error) {
	var list []uint32
	n := t.index.Slots()
	for left := sweepSlots; left > 0 && slot < n && len(list) < rewriteBatch; left-- {
		if bucketfile.Location(t.index.Location(slot)).File() == file {
			list = append(list, slot)
		}
		slot++
	}
	return slot, slot >= n, t.eachBucket(list, fn)
}

// moveBucket appends a bucket as it is, with the dirty rows of its slot.
func (t *Table) moveBucket(loc bucketfile.Location, b *bucketfile.Bucket) error {
	mask := t.index.MaskOf(b.Slot)
	t.lockMoving(b.Slot, mask, b)
	defer t.rewrite.moving.Unlock()
	w := &t.rewrite.rewriter
	w.urgent, w.moves = true, true
	defer func() { w.urgent, w.moves = false, false }()
	if invariants.Enabled {
		t.checkCached(b.Slot, b)
	}
	t.collectDirty(b.Slot, mask)
	w.Merge(b, nil)
	if _, err := t.replaceBucket(b.Slot, b.Len()); err != nil {
		return err
	}
	w.counts.compactedBytes += int64(loc.Units()) * int64(t.files.Unit())
	return t.files.Release(loc)
}
