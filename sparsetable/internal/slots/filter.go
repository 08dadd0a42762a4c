package slots

import "math/bits"

// filterShape says how the filters of an index are laid out and probed.
type filterShape struct {
	bytes  int
	words  uint32 // of 64 bits
	bits   uint64
	probes int
	// shifts has the positions in the mixed hash at which the 12 bits of each probe begin. The last
	// position is repeated so that there are always five probes: a loop of varying length would
	// cost more than the probes that it saves.
	shifts [maxProbes]uint8
}

// shapeOf returns the shape of filters of that many bytes. If probes is 0, it chooses the number
// for filters with rows keys, see the package documentation.
func shapeOf(bytes, rows, probes int) filterShape {
	f := filterShape{bytes: bytes, words: uint32(bytes / 8), bits: uint64(bytes) * 8}
	if bytes == 0 {
		return f
	}
	f.probes = probes
	if probes == 0 {
		f.probes = min(max((8*bytes+rows)/(2*rows), 1), maxProbes) // rounded
	}
	for i := range f.shifts {
		f.shifts[i] = uint8(probeBits * min(i, f.probes-1))
	}
	return f
}

// mix returns bits each of which depends on the whole hash: it XORs the halves of a 128-bit
// product. The constant is the fraction of sqrt(2).
func mix(hash uint64) uint64 {
	hi, lo := bits.Mul64(hash, 0x6a09e667f3bcc909)
	return hi ^ lo
}

// place is the bit of a filter of n bits on which a probe falls: 12 bits of g scaled to n.
func place(g uint64, shift uint8, n uint64) uint64 {
	return g >> (shift & 63) % probeRange * n >> probeBits
}

// has returns 1 if filter holds the key whose mixed hash is g, else 0.
func (f *filterShape) has(filter []uint64, g uint64) uint64 {
	s, n := &f.shifts, f.bits
	p0, p1, p2, p3, p4 := place(g, s[0], n), place(g, s[1], n), place(g, s[2], n), place(g, s[3], n), place(g, s[4], n)
	return filter[p0>>6] >> (p0 & 63) &
		(filter[p1>>6] >> (p1 & 63)) &
		(filter[p2>>6] >> (p2 & 63)) &
		(filter[p3>>6] >> (p3 & 63)) &
		(filter[p4>>6] >> (p4 & 63)) & 1
}

func (f *filterShape) set(filter []uint64, g uint64) {
	for _, s := range f.shifts {
		p := place(g, s, f.bits)
		filter[p>>6] |= 1 << (p & 63)
	}
}

// filterOf returns the filter of slot.
func (x *Index) filterOf(slot uint32) []uint64 {
	i := slot % chunkSlots * x.filter.words
	return x.chunk(slot).filters[i : i+x.filter.words]
}

// MayContain reports whether the bucket of slot may hold a key with that hash; false means that it
// does not. Without filters it always returns true.
func (x *Index) MayContain(slot uint32, hash uint64) bool {
	return x.filter.bytes == 0 || x.filter.has(x.filterOf(slot), mix(hash)) != 0
}

// ResetFilter removes all keys from the filter of slot.
func (x *Index) ResetFilter(slot uint32) { x.SetFilter(slot, nil) }

// SetFilter replaces the keys in the filter of slot with those of hashes.
func (x *Index) SetFilter(slot uint32, hashes []uint64) {
	if x.filter.bytes == 0 {
		return
	}
	x.touch(slot >> x.pageShift)
	f := x.filterOf(slot)
	clear(f)
	for _, h := range hashes {
		x.filter.set(f, mix(h))
	}
}

// FilterUnknown reports whether the filter of slot lets every key through because it was written in
// a form that this index cannot use. A caller that reads the bucket can repair the filter with
// SetFilter.
func (x *Index) FilterUnknown(slot uint32) bool {
	if x.filter.bytes == 0 {
		return false
	}
	for _, w := range x.filterOf(slot) {
		if w != ^uint64(0) {
			return false
		}
	}
	return true
}
