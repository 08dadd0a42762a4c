package ssd

import (
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/slots"
)

// A table merges slots when its buckets have on average less than mergeBelow of their target rows,
// and continues until they have mergeUntil of them. The gap between the two keeps a table whose
// size varies a little from splitting and merging slots in turn.
const (
	mergeBelow = 0.6
	mergeUntil = 0.9
	mergeBatch = rewriteBatch / 2 // pairs of slots in a batch
	// A table of up to minMergedSlots slots takes so little memory that merging is not worthwhile.
	minMergedSlots = 64
)

// tooManySlots reports whether slots should be merged. They are not merged before the clean rows of
// the snapshot are restored: restoreHot takes the rows of a slot without an old bucket for expired
// or lost, and skips them. It could not recognize these rows once their slot is merged with one
// that still has its old bucket. REQUIRES: rewrite is held.
func (t *Table) tooManySlots() bool {
	select {
	case <-t.restored:
		return t.slotsToMerge()
	default:
		return false
	}
}

// slotsToMerge is tooManySlots after the clean rows are restored.
func (t *Table) slotsToMerge() bool {
	share := mergeBelow
	if t.rewrite.merging {
		share = mergeUntil
	}
	n := t.index.Slots()
	t.rewrite.merging = n > minMergedSlots && float64(t.totalRows()) < share*float64(n)*float64(t.index.TargetRows())
	return t.rewrite.merging
}

// mergeSlots merges a batch of the last slots into their partners, the reverse of splitting: each
// slot gives its rows to the slot that it was split from. more is false if there is no disk space
// for the merged buckets. REQUIRES: rewrite is held.
func (t *Table) mergeSlots() (more bool, err error) {
	var list []uint32
	from, into := t.index.NextMerge()
	for n := 0; n < mergeBatch && from > into; n++ { // back to the beginning of the round
		list = append(list, into, from)
		if into == 0 {
			break
		}
		from, into = from-1, into-1
	}
	list = list[:max(2, t.batchOf(list)&^1)]
	w := &t.rewrite.rewriter
	err = t.readInOrder(list, 2, func(old []*bucketfile.Bucket) error {
		w.counts.merges++
		return t.mergeSlot(old[0], old[1])
	})
	if errors.Is(err, bucketfile.ErrNoSpace) {
		return false, nil // slots stay as they are
	}
	if err != nil {
		return false, err
	}
	return true, t.giveCache()
}

// mergeSlot merges the last slot into its partner. kept is the bucket of the
// partner, gone that of the last slot; both may be nil.
func (t *Table) mergeSlot(kept, gone *bucketfile.Bucket) error {
	from, into := t.index.NextMerge()
	if gone == nil {
		// The partner's bucket and filter are right as they are.
		mask := t.index.MaskOf(from)
		t.checkpoints.BeforeBucket(from, mask)
		t.checkpoints.ForgetSaved(from, mask)
		t.indexMu.Lock()
		defer t.indexMu.Unlock()
		return t.index.Shrink()
	}
	mask := slots.SlotMask(into, t.index.Slots()-1)
	t.lockMoving(into, mask, gone)
	defer t.rewrite.moving.Unlock()
	w := &t.rewrite.rewriter
	t.collectDirty(into, mask)
	w.Merge(kept, nil)
	w.AddOthers(gone, nil)
	before := gone.Len()
	if kept != nil {
		before += kept.Len()
	}
	loc, err := t.writeBucket(into)
	if err != nil {
		t.dirtyAgain()
		return err
	}
	prev := [2]bucketfile.Location{bucketfile.Location(t.index.Location(into)), bucketfile.Location(t.index.Location(from))}
	t.indexMu.Lock()
	err = t.index.Shrink()
	t.index.Set(into, uint64(loc))
	t.index.SetFilter(into, w.Hashes)
	t.indexMu.Unlock()
	t.rewrite.stored += int64(len(w.Keys) - before)
	t.nowStored()
	if invariants.Enabled {
		t.checkSlot(into, w.Hashes)
	}
	for _, p := range prev {
		if e := t.files.Release(p); err == nil {
			err = e
		}
	}
	return err
}
