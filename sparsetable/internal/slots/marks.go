package slots

import (
	"math/bits"
	"sync/atomic"
)

// marks has a bit for each slot of a chunk, with which the caller notes that something is to be
// done with the slot. Marks are not part of a page.
type marks [chunkSlots / 64]uint64

const marksBytes = chunkSlots / 8

// Mark marks a slot. Several goroutines may set and clear marks at the same time, whenever Location
// may be called.
func (x *Index) Mark(slot uint32) {
	if w, bit := x.markOf(slot); atomic.LoadUint64(w)&bit == 0 {
		atomic.OrUint64(w, bit)
	}
}

// Unmark removes the mark of a slot.
func (x *Index) Unmark(slot uint32) {
	if w, bit := x.markOf(slot); atomic.LoadUint64(w)&bit != 0 {
		atomic.AndUint64(w, ^bit)
	}
}

func (x *Index) markOf(slot uint32) (word *uint64, bit uint64) {
	return &x.chunk(slot).marks[slot%chunkSlots/64], 1 << (slot % 64)
}

// Marked calls fn, in ascending order, for the marked slots from first to end-1 whose
// buckets have locations from lowest to beyond-1.
func (x *Index) Marked(first, end uint32, lowest, beyond uint64, fn func(slot uint32, location uint64)) {
	for at := first; at < min(end, x.n); at = at&^63 + 64 {
		c := x.chunk(at)
		word := atomic.LoadUint64(&c.marks[at%chunkSlots/64]) &^ (1<<(at%64) - 1)
		for ; word != 0; word &= word - 1 {
			slot := at&^63 + uint32(bits.TrailingZeros64(word))
			if slot >= min(end, x.n) {
				return
			}
			if loc := c.locations[slot%chunkSlots]; lowest <= loc && loc < beyond {
				fn(slot, loc)
			}
		}
	}
}

// inheritMark marks slot `to` if `from` is marked.
func (x *Index) inheritMark(from, to uint32) {
	if w, bit := x.markOf(from); atomic.LoadUint64(w)&bit != 0 {
		x.Mark(to)
	}
}
