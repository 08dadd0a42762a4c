package ssd

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/verify"
)

// The functions of this file are called only where invariants.Enabled is true.

// checkCached compares the rows of a slot in the cache with its bucket, which may be nil. A clean
// row that was stored must be the same in the bucket, and a row that was never stored must not be
// in the bucket. Pinned rows are skipped, because they may be changing. REQUIRES: rewrite is held,
// and no row of the slot is being collected.
func (t *Table) checkCached(slot uint32, b *bucketfile.Bucket) {
	inBucket := map[uint64][]float32{}
	if b != nil {
		for i := range b.Len() {
			inBucket[b.Key(i)] = b.Row(i)
		}
		invariants.Check(len(inBucket) == b.Len(), "slot %d has a key twice", slot)
	}
	var err error
	t.cache.ForEachOfSlot(uint64(slot), t.index.MaskOf(slot), func(e rowcache.Entry) rowcache.Change {
		stored, ok := inBucket[e.Key]
		switch {
		case e.Pins > 0 || err != nil:
		case !ok && t.rewrite.scanning > 0: // Expire drops it from the cache at its end
		case ok != (e.Flags&checkpoint.Stored != 0):
			err = fmt.Errorf("slot %d, key %d: in the bucket %v, flags %x", slot, e.Key, ok, e.Flags)
		case ok && e.Flags&rowcache.Dirty == 0 && !sameBits(stored, e.Row):
			err = fmt.Errorf("slot %d, key %d is clean, but holds %v, in its bucket %v", slot, e.Key, e.Row, stored)
		}
		return rowcache.Change{}
	})
	invariants.NoError(err)
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// checkSlot checks the index entry of a slot whose bucket was written with keys of these hashes.
// REQUIRES: rewrite is held.
func (t *Table) checkSlot(slot uint32, hashes []uint64) {
	seen := make(map[uint64]bool, len(hashes))
	for _, h := range hashes {
		invariants.Check(!seen[h], "slot %d has the key of hash %x twice", slot, h)
		seen[h] = true
		invariants.Check(t.index.Slot(h) == slot, "hash %x is of slot %d, lies in the bucket of slot %d", h, t.index.Slot(h), slot)
		invariants.Check(t.index.MayContain(slot, h), "the filter of slot %d lacks hash %x", slot, h)
	}
	invariants.Check((t.index.Location(slot) != 0) == (len(hashes) > 0), "slot %d has %d rows, its location is %x", slot, len(hashes), t.index.Location(slot))
}

// checkTable recounts what the table has counters for: rows in buckets, live bytes of files, and
// the counters of the cache. REQUIRES: rewrite is held, and the index refers to all buckets that
// were committed.
func (t *Table) checkTable() {
	least, most := int64(0), int64(0) // bounds on the number of rows, by the buckets' lengths
	for l := range verify.Locations(t.index) {
		least++
		most += int64(bucketfile.RowsIn(l.Units()*t.files.Unit(), t.layout.Words()))
	}
	stored := t.rewrite.stored
	invariants.Check(least <= stored && stored <= most, "%d to %d rows are in buckets, %d counted", least, most, stored)
	c := t.cache.Stats()
	// Expire drops rows from the cache at its end.
	invariants.Check(t.rewrite.scanning > 0 || c.Marked2 <= stored, "%d rows are in buckets, but %d in the cache say so", stored, c.Marked2)
	invariants.NoError(errors.Join(t.cache.Check(), t.files.CheckLive(verify.Locations(t.index))))
}
