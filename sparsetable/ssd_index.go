package sparsetable

import (
	"math/bits"
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// indexed is the index of buckets.
type indexed struct {
	indexMu sync.RWMutex
	index   *slots.Index
}

// bucketOf is where the bucket of a hash's slot lies. REQUIRES: indexMu is held, or the
// table was opened for reading only.
func (x *indexed) bucketOf(hash uint64) bucketfile.Location {
	return bucketfile.Location(x.index.Location(x.index.Slot(hash)))
}

// liesAt reports whether the bucket of a slot is still the one at loc. REQUIRES:
// rewrite or indexMu is held.
func (x *indexed) liesAt(slot uint32, loc bucketfile.Location) bool {
	return slot < x.index.Slots() && bucketfile.Location(x.index.Location(slot)) == loc
}

// markBuckets marks the slots whose buckets may have the keys of hashes, and
// returns the number of those keys.
func (x *indexed) markBuckets(hashes []uint64) (found int) {
	const chunk = 1024
	var in [chunk]uint32
	var locations [chunk]uint64
	for len(hashes) > 0 {
		n := min(len(hashes), chunk)
		x.indexMu.RLock()
		x.index.Lookup(hashes[:n], in[:n], locations[:n])
		for i, slot := range in[:n] {
			if locations[i] != 0 {
				x.index.Mark(slot)
				found++
			}
		}
		x.indexMu.RUnlock()
		hashes = hashes[n:]
	}
	return found
}

// slotMask is the mask of the bits of a hash that are compared with slot's number,
// in a table of n slots.
func slotMask(slot, n uint32) uint64 {
	level := uint(bits.Len32(n)) - 1
	if slot >= 1<<level || slot < n-1<<level {
		level++
	}
	return 1<<level - 1
}

// closeIndex frees the memory of the index.
func (x *indexed) closeIndex() error {
	if x.index == nil {
		return nil
	}
	x.indexMu.Lock()
	defer x.indexMu.Unlock()
	return x.index.Close()
}
