package ssd

import (
	"errors"
	"math/bits"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/invariants"
)

// split splits slots until there are as many as the total number of rows requires, and reports
// whether that is achieved. It splits at most limit slots that have a bucket. Their dirty rows are
// written with them, so that splitting does not cause a bucket to be written more often. If there
// is no room for more slots, it leaves the rest for later. REQUIRES: rewrite is held. It returns
// errSpaceUnchecked if it has to be called again.
func (t *Table) split(total int64, limit int) (done bool, err error) {
	w := &t.rewrite.rewriter
	var batch []uint32
	t.rewrite.unsplit = nil
	for t.index.ShouldSplit(total) {
		missing := t.slotsWanted(total)
		most := min(rewriteBatch/2, missing)
		// Room is made first, because that may write rows to slots that had no bucket.
		if room, err := t.roomForSlots(most, missing); err != nil || !room {
			return false, err
		}
		// The next slots to be split have consecutive numbers, up to the end of the round.
		from, to := t.index.NextSplit()
		level := uint32(1) << (bits.Len32(to) - 1)
		empty := t.index.Location(from) == 0
		batch = batch[:0]
		for s := from; s < level && len(batch) < most && (t.index.Location(s) == 0) == empty; s++ {
			batch = append(batch, s)
		}
		if !empty {
			if limit <= 0 {
				return false, nil
			}
			if err := t.mayWrite(); err != nil {
				return false, err
			}
			batch = batch[:t.batchOf(batch[:min(len(batch), limit, int(t.evictStep()))])]
		}
		if empty {
			err = t.splitEmpty(len(batch))
		} else {
			limit -= len(batch)
			err = t.splitSlots(batch)
		}
		if errors.Is(err, bucketfile.ErrNoSpace) {
			t.rewrite.unsplit = err
			return false, nil // buckets grow instead; calls that must write return the error
		}
		if err != nil {
			return false, err
		}
		w.counts.splits += int64(len(batch))
	}
	return true, nil
}

// slotsWanted is how many more slots that number of rows requires, at least 1.
func (t *Table) slotsWanted(rows int64) int {
	target := int64(t.index.TargetRows())
	return int(max(1, (rows+target-1)/target-int64(t.index.Slots())))
}

// splitEmpty splits the next n slots, which have no bucket.
func (t *Table) splitEmpty(n int) error {
	t.checkpoints.AwaitPages()
	t.indexMu.Lock()
	defer t.indexMu.Unlock()
	for range n {
		if err := t.index.Grow(); err != nil {
			return err
		}
	}
	return nil
}

// splitSlots splits the slots of list, which are the next to be split and have buckets.
func (t *Table) splitSlots(list []uint32) error {
	return t.readInOrder(list, 1, func(old []*bucketfile.Bucket) error {
		from := list[0]
		list = list[1:]
		return t.splitSlot(from, old[0])
	})
}

// readInOrder reads the buckets of all slots of list at once, and calls fn for n buckets at a time,
// in the order of the list: buckets that arrive early wait. For a slot without a bucket it passes
// nil. REQUIRES: rewrite is held, and list has at most rewriteBatch slots, a multiple of n.
func (t *Table) readInOrder(list []uint32, n int, fn func(old []*bucketfile.Bucket) error) error {
	r := t.rewrite.ordered
	defer r.Drain()
	i := 0
	r.Fill(func() (slot uint32, ok bool) {
		if i++; i > len(list) {
			return 0, false
		}
		return list[i-1], true
	})
	old := make([]*bucketfile.Bucket, n)
	for r.Wait(n, n) > 0 {
		for i := range old {
			_, b, ok, err := r.Current(i)
			if err != nil {
				return err
			}
			if !ok {
				panic("sparsetable: a bucket moved while its slot was split or merged")
			}
			old[i] = b
		}
		if err := fn(old); err != nil {
			return err
		}
		r.Advance(n)
	}
	return nil
}

// splitSlot splits the next slot, whose bucket is old.
func (t *Table) splitSlot(from uint32, old *bucketfile.Bucket) error {
	next, to := t.index.NextSplit()
	if next != from {
		panic("sparsetable: slots are split out of order")
	}
	mask := t.index.MaskOf(from)
	t.lockMoving(from, mask, old, to)
	defer t.rewrite.moving.Unlock()
	w := &t.rewrite.rewriter
	if invariants.Enabled {
		t.checkCached(from, old)
	}
	t.collectDirty(from, mask)
	bit := uint64(1) << (bits.Len32(to) - 1)
	var locations [2]bucketfile.Location
	var hashes [2][]uint64
	rows := 0
	for side := range locations {
		w.Merge(old, func(h uint64) bool { return (h&bit != 0) == (side == 1) })
		slot := from
		if side == 1 {
			slot = to
		}
		loc, err := t.writeBucket(slot)
		if err != nil {
			t.dirtyAgain()
			return errors.Join(err, t.files.Release(locations[0]))
		}
		locations[side] = loc
		rows += len(w.Keys)
		hashes[side] = append(hashes[side], w.Hashes...)
	}
	prev := bucketfile.Location(t.index.Location(from))
	t.indexMu.Lock()
	if err := t.index.Grow(); err != nil {
		t.indexMu.Unlock()
		t.dirtyAgain()
		return errors.Join(err, t.files.Release(locations[0]), t.files.Release(locations[1]))
	}
	for side, slot := range [2]uint32{from, to} {
		t.index.Set(slot, uint64(locations[side]))
		t.index.SetFilter(slot, hashes[side])
	}
	t.indexMu.Unlock()
	t.rewrite.stored += int64(rows - old.Len())
	t.nowStored()
	if invariants.Enabled {
		t.checkSlot(from, hashes[0])
		t.checkSlot(to, hashes[1])
	}
	return t.files.Release(prev)
}
