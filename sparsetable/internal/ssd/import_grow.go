package ssd

import (
	"context"
	"errors"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/distinct"
	"aibox/sparsetable/internal/rowcache"
)

// maxLookups bounds how many keys of the sample are looked up in the table.
const maxLookups = 1024

// Grow implements bulk.Table. It grows the index at once to the size that the table will need, so
// that buckets are written once. Slots without a bucket cost nothing to split.
func (t importing) Grow(ctx context.Context, keys *distinct.Keys) error {
	added, err := t.newKeys(keys)
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.rewrite.Lock()
		total := t.totalRows() + added
		before := t.index.Slots()
		more := t.index.ShouldSplit(total)
		if more {
			// Grow in steps, so that others get the lock.
			err = t.keepShapeFor(min(total, (int64(before)+evictBatch)*int64(t.index.TargetRows())))
		}
		grown := t.index.Slots() > before
		if errors.Is(err, errSpaceUnchecked) {
			grown, err = true, nil
		}
		t.rewrite.Unlock()
		if err != nil || !more || !grown { // without room for more slots, buckets grow
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
}

// newKeys estimates how many of the distinct keys to be imported the table does not have.
func (t importing) newKeys(keys *distinct.Keys) (int64, error) {
	n := keys.Number()
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if t.totalRows() == 0 || n == 0 {
		return n, nil
	}
	bySlot := make([]uint64, 0, keys.Kept())
	for k := range keys.Keys() {
		bySlot = append(bySlot, k)
	}
	// Any sample of the keys will do. Sorting by hash makes it deterministic.
	slices.SortFunc(bySlot, func(a, b uint64) int {
		if t.hash.Of(a) < t.hash.Of(b) {
			return -1
		}
		return 1
	})
	bySlot = bySlot[:min(len(bySlot), maxLookups)]
	known := map[uint64]bool{}
	wanted := map[uint64]bool{}
	var list []uint32
	for _, k := range bySlot {
		wanted[k] = true
		list = append(list, t.index.Slot(t.hash.Of(k)))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	err := t.eachBucket(list, func(slot uint32, b *bucketfile.Bucket) error {
		t.cache.ForEachOfSlot(uint64(slot), t.index.MaskOf(slot), func(e rowcache.Entry) rowcache.Change {
			if wanted[e.Key] {
				known[e.Key] = true
			}
			return rowcache.Change{}
		})
		if b != nil {
			for i := range b.Len() {
				if k := b.Key(i); wanted[k] {
					known[k] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n * int64(len(wanted)-len(known)) / int64(len(wanted)), nil
}
