package ssd

import (
	"errors"
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/rowcache"
)

// rewriteBatch is the maximum number of buckets read at a time.
const rewriteBatch = 128

// rewriteSlots rewrites the bucket of each slot, with the slot's dirty rows and the rest of its old
// bucket. If drop is not nil, rows for which it returns true are left out. REQUIRES: rewrite is
// held.
func (t *Table) rewriteSlots(list []uint32, drop func(row []float32) bool) error {
	return t.eachBucket(list, func(slot uint32, old *bucketfile.Bucket) error {
		return t.rewriteSlot(slot, old, drop)
	})
}

// eachBucket is readBuckets for any number of slots, in batches that can be read at once. REQUIRES:
// rewrite is held.
func (t *Table) eachBucket(list []uint32, fn func(slot uint32, old *bucketfile.Bucket) error) error {
	for len(list) > 0 {
		n := t.batchOf(list)
		if err := t.readBuckets(list[:n], fn); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// batchOf is how many slots at the beginning of list can be read at once.
func (t *Table) batchOf(list []uint32) int {
	bytes := int64(0)
	for n, slot := range list {
		bytes += int64(bucketfile.Location(t.index.Location(slot)).Units()) * int64(t.files.Unit())
		if n > 0 && (n == rewriteBatch || bytes > t.plan.ReadBytes/4) {
			return n
		}
	}
	return len(list)
}

// readBuckets reads the buckets of slots and calls fn for each slot, in any order; old is nil if
// the slot has no bucket. REQUIRES: rewrite is held.
func (t *Table) readBuckets(list []uint32, fn func(slot uint32, old *bucketfile.Bucket) error) error {
	w := &t.rewrite.rewriter
	if cap(w.requests) < len(list) {
		w.requests = make([]bucketfile.Request, len(list))
	}
	w.submit = w.submit[:0]
	var failed error
	for i, slot := range list {
		if loc := bucketfile.Location(t.index.Location(slot)); loc != 0 {
			w.requests[i] = bucketfile.Request{Slot: slot, Location: loc}
			w.submit = append(w.submit, &w.requests[i])
		} else if failed == nil {
			failed = fn(slot, nil)
		}
	}
	w.queue.Submit(w.submit)
	for w.queue.Pending() > 0 {
		w.done = w.queue.Wait(w.done[:0], 1)
		for _, r := range w.done {
			if failed == nil {
				failed = r.Err
			}
			if failed == nil {
				failed = fn(r.Slot, &r.Bucket)
			}
		}
		w.queue.Finish(w.done)
	}
	return failed
}

// lockMoving acquires moving for a caller that is about to write a slot's bucket, or the buckets of
// the slot and of others, from the slot's dirty rows and its old bucket, which may be nil. Before
// it locks, it does everything that may wait for a device, so that nobody who needs moving waits
// for a write. It waits for the snapshot that is being written (checkpoint.Store.BeforeBucket), and
// for an append buffer with room for about as many rows as the bucket will have. REQUIRES: rewrite
// is held.
func (t *Table) lockMoving(slot uint32, mask uint64, old *bucketfile.Bucket, others ...uint32) {
	t.checkpoints.BeforeBucket(slot, mask)
	rows := plan.LikelyRows(t.index.TargetRows())
	if old != nil {
		rows += old.Len()
	}
	t.files.AwaitBuffer(slot, rows)
	for _, other := range others {
		t.files.AwaitBuffer(other, rows)
	}
	t.rewrite.moving.Lock()
}

// rewriteSlot rewrites the bucket of one slot.
func (t *Table) rewriteSlot(slot uint32, old *bucketfile.Bucket, drop func(row []float32) bool) error {
	mask := t.index.MaskOf(slot)
	t.lockMoving(slot, mask, old)
	defer t.rewrite.moving.Unlock()
	w := &t.rewrite.rewriter
	if invariants.Enabled {
		t.checkCached(slot, old)
	}
	t.collectDirty(slot, mask)
	before, dropped := 0, 0
	if old != nil {
		before = old.Len()
	}
	w.Merge(old, nil)
	if drop != nil {
		dropped = w.Filter(drop)
	}
	if len(w.DirtyRefs) == 0 && dropped == 0 {
		return nil // nothing to write: the slot's dirty rows were pinned meanwhile
	}
	prev, err := t.replaceBucket(slot, before)
	if err != nil {
		return err
	}
	w.counts.droppedRows += int64(dropped)
	return t.files.Release(prev)
}

// replaceBucket writes the merged rows as the new bucket of slot and puts its location into the
// index. before is the number of rows of the old bucket. The caller must release prev, the location
// of the old bucket. REQUIRES: rewrite and moving are held.
func (t *Table) replaceBucket(slot uint32, before int) (prev bucketfile.Location, err error) {
	w := &t.rewrite.rewriter
	loc, err := t.writeBucket(slot)
	if err != nil {
		t.dirtyAgain()
		return 0, err
	}
	prev = bucketfile.Location(t.index.Location(slot))
	t.indexMu.Lock()
	t.index.Set(slot, uint64(loc))
	if !w.SameKeys(before) || t.index.FilterUnknown(slot) {
		t.index.SetFilter(slot, w.Hashes)
	}
	t.indexMu.Unlock()
	t.rewrite.stored += int64(len(w.Keys) - before)
	t.nowStored()
	if invariants.Enabled {
		t.checkSlot(slot, w.Hashes)
	}
	return prev, nil
}

// collectDirty copies the dirty rows of a slot that are not pinned and marks them clean; a later
// update makes them dirty again. Pinned rows lose the flag checkpoint.Saved. The collected rows
// stay in the cache as long as rewrite and moving are held, since a row is dropped only under one
// of the two. REQUIRES: lockMoving has been called for the slot.
func (t *Table) collectDirty(slot uint32, mask uint64) {
	w := &t.rewrite.rewriter
	w.NoDirty()
	t.cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		if e.Flags&rowcache.Dirty == 0 {
			return rowcache.Change{}
		}
		if e.Pins > 0 {
			return rowcache.Change{Clear: checkpoint.Saved}
		}
		if t.trained(e.Row) {
			w.AddDirty(e.Ref, e.Key, e.Row)
		}
		return rowcache.Change{Clear: rowcache.Dirty}
	})
}

// dirtyAgain undoes collectDirty by marking the rows dirty again.
func (t *Table) dirtyAgain() {
	t.cache.Change(t.rewrite.DirtyRefs, rowcache.Change{Set: rowcache.Dirty})
}

// nowStored records that the rows of collectDirty are in a bucket.
func (t *Table) nowStored() {
	w := &t.rewrite.rewriter
	t.cache.Change(w.DirtyRefs, rowcache.Change{Set: checkpoint.Stored})
	w.counts.flushedRows += int64(len(w.DirtyRefs))
	w.counts.flushedSlots++
}

// writeBucket appends the collected keys and rows as the bucket of slot.
func (t *Table) writeBucket(slot uint32) (bucketfile.Location, error) {
	w := &t.rewrite.rewriter
	if len(w.Keys) == 0 {
		return 0, nil
	}
	a, err := t.files.Begin(slot, len(w.Keys), w.urgent)
	if errors.Is(err, bucketfile.ErrTooLarge) && t.hash == 0 {
		err = fmt.Errorf("%w, because this table has the hash function of an older version, under which many keys share their lowest bits: export its rows (aibox table export) and import them into a new table (aibox table import): %w", contract.ErrSkewed, err)
	}
	if err != nil {
		return 0, err
	}
	for i, key := range w.Keys {
		a.Put(key, w.Rows[i])
	}
	loc, err := a.Commit()
	bytes := int64(loc.Units()) * int64(t.files.Unit())
	w.counts.writtenBytes += bytes
	if !w.moves {
		t.uncheckedBytes.Add(bytes)
	}
	return loc, err
}
