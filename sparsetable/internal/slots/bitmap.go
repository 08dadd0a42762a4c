package slots

import "math/bits"

// bitmap is a set of page numbers.
type bitmap []uint64

func bitmapBytes(pages int64) int64 { return (pages + 63) / 64 * 8 }

// grow makes room for pages 0 to n-1.
func (b *bitmap) grow(n uint32) {
	for uint32(len(*b)) < (n+63)/64 {
		*b = append(*b, 0)
	}
}

// clone returns a copy without room to grow.
func (b bitmap) clone() bitmap { return append(make(bitmap, 0, len(b)), b...) }

func (b bitmap) clearAll()    { clear(b) }
func (b bitmap) set(p uint32) { b[p/64] |= 1 << (p % 64) }
func (b bitmap) clear(p uint32) {
	b[p/64] &^= 1 << (p % 64)
}

// clearFrom removes the pages from p on.
func (b bitmap) clearFrom(p uint32) {
	if i := int(p / 64); i < len(b) {
		b[i] &= 1<<(p%64) - 1
		clear(b[i+1:])
	}
}

// has returns false for pages beyond the capacity of the bitmap.
func (b bitmap) has(p uint32) bool {
	return p/64 < uint32(len(b)) && b[p/64]>>(p%64)&1 != 0
}

func (b bitmap) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// or adds the pages of o, which is no longer than b.
func (b bitmap) or(o bitmap) {
	for i, w := range o {
		b[i] |= w
	}
}

// next returns the first page of the set that is p or greater.
func (b bitmap) next(p uint32) (uint32, bool) {
	for i := p / 64; i < uint32(len(b)); i++ {
		w := b[i]
		if i == p/64 {
			w &= ^uint64(0) << (p % 64)
		}
		if w != 0 {
			return i*64 + uint32(bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}
