package slots

import (
	"fmt"

	"aibox/sparsetable/internal/offheap"
)

// SmallerFilter is the size to which filters of that many bytes shrink: half of it, or 0 if half is
// not a multiple of 8.
func SmallerFilter(bytes int) int {
	if bytes%16 != 0 {
		return 0
	}
	return bytes / 2
}

// ShrinkFilters reduces every filter to the size SmallerFilter, when a growing table needs the
// memory for something else. It does not need the keys: a probe falls on bit g*n/4096 of a filter
// of n bits, and on half of that, rounded down, in one of n/2 bits. So the smaller filter has bit i
// if the larger one had 2i or 2i+1. The number of probes stays. It is more than the best number for
// half the bits, which does little harm (see the package documentation). When the size becomes 0,
// the index continues without filters.
//
// REQUIRES: no capture is running. It fails only if memory cannot be given back; the filters are
// smaller nevertheless.
func (x *Index) ShrinkFilters() error {
	if x.capture != nil {
		panic("slots: ShrinkFilters was called while a capture is running")
	}
	small := SmallerFilter(x.filter.bytes)
	var failed error
	for i := range x.chunks {
		c := &x.chunks[i]
		if small == 0 {
			if err := c.unmapFilters(); err != nil {
				failed = err
			}
			continue
		}
		n := chunkSlots * small / 8
		halve(c.filters[:n], c.filters)
		b, err := offheap.Map(chunkSlots * small)
		if err != nil { // they stay in the old mapping
			failed = fmt.Errorf("slots: smaller filters: %w", err)
			c.filters = c.filters[:n]
			continue
		}
		copy(offheap.Uint64s(b), c.filters[:n])
		if err := c.unmapFilters(); err != nil {
			failed = err
		}
		c.memory, c.filters = b, offheap.Uint64s(b)
	}
	x.filter = x.filter.resized(small)
	return failed
}

// resized returns the shape of filters of another size with the same probes.
func (f *filterShape) resized(bytes int) filterShape {
	g := *f
	g.bytes, g.words, g.bits = bytes, uint32(bytes/8), uint64(bytes)*8
	if bytes == 0 {
		return filterShape{}
	}
	return g
}

// halve sets dst, which has half the length of src, to filters of half the size. dst may be the
// first half of src.
func halve(dst, src []uint64) {
	for i := range dst {
		dst[i] = pairs(src[2*i]) | pairs(src[2*i+1])<<32
	}
}

// double returns filters of twice the size that let the same keys through as src: if a probe falls
// on bit i of the smaller filter, it falls on 2i or 2i+1 of the larger one.
func double(src []uint64) []uint64 {
	dst := make([]uint64, 2*len(src))
	for i, w := range src {
		dst[2*i], dst[2*i+1] = spread(w&0xffffffff)*3, spread(w>>32)*3
	}
	return dst
}

// spread sets bit 2i of the result if bit i of w is set, 0 <= i < 32.
func spread(w uint64) uint64 {
	w = (w | w<<16) & 0x0000ffff0000ffff
	w = (w | w<<8) & 0x00ff00ff00ff00ff
	w = (w | w<<4) & 0x0f0f0f0f0f0f0f0f
	w = (w | w<<2) & 0x3333333333333333
	return (w | w<<1) & 0x5555555555555555
}

// pairs sets bit i of the result, 0 <= i < 32, to the disjunction of bits 2i and 2i+1 of w.
func pairs(w uint64) uint64 {
	w = (w | w>>1) & 0x5555555555555555
	w = (w | w>>1) & 0x3333333333333333
	w = (w | w>>2) & 0x0f0f0f0f0f0f0f0f
	w = (w | w>>4) & 0x00ff00ff00ff00ff
	w = (w | w>>8) & 0x0000ffff0000ffff
	return (w | w>>16) & 0x00000000ffffffff
}
