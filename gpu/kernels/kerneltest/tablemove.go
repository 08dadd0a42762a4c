package kerneltest

import (
	"fmt"
	"math"

	"aibox/gpu"
)

// same fails the test unless the elements of a have become the bits that want says, NaN too, and
// nothing else in its memory has changed.
func (r *rig) same(what string, a *array, want func(at int) uint32) {
	r.Helper()
	r.check(what, a, func(got float32, _, at int) (string, bool) {
		w := want(at)
		return fmt.Sprintf("%#x", w), math.Float32bits(got) == w
	})
}

// bits draws any bits but those with which emulated devices mark what was not written. Half are a NaN.
func (r *rig) bits() float32 {
	v := r.Uint32()
	if r.IntN(2) == 0 {
		v |= 0x7f800000
	}
	if v == 0x7fb1ab1a {
		v++
	}
	return math.Float32frombits(v)
}

// moves draws a table, how many words its rows have, and the places of some of its rows; rows of
// all numbers of words between one and more than a block has threads.
func (r *rig) moves() (table *array, words int, index []int32) {
	words = []int{1, 2, 8 + r.IntN(56), 64 + r.IntN(240), 513 + r.IntN(300)}[r.IntN(5)]
	n := 1 + r.IntN(40)
	if words <= 2 {
		n += r.IntN(600) // several blocks of them
	}
	for _, i := range r.Perm(n)[:r.IntN(n+1)] {
		index = append(index, int32(i))
	}
	if r.first {
		index = append(index[:0], int32(n-1), 0)[:min(n, 2)]
	}
	return r.vector(n*words, r.bits), words, index
}

// longer is a region with an array of ints, and one that nobody looks at.
func (r *rig) longer(index []int32) gpu.Region {
	r.Helper()
	return r.ints(append(index[:len(index):len(index)], -1))
}

var _ = add("take rows", func(r *rig) {
	table, words, index := r.moves()
	if len(index) > 1 && r.IntN(2) == 0 {
		index[0] = index[len(index)-1] // a row may be taken twice
	}
	to := r.vector((len(index)+1)*words, r.garbage)
	r.must(r.k.TakeRows(r.s, to.region(), table.region(), r.longer(index), words, len(index)))
	r.same("TakeRows", to, func(at int) uint32 {
		if at/words == len(index) {
			return math.Float32bits(to.value(0, at))
		}
		return math.Float32bits(table.value(0, int(index[at/words])*words+at%words))
	})
})

var _ = add("put rows", func(r *rig) {
	table, words, index := r.moves()
	from := r.vector((len(index)+1)*words, r.bits)
	r.must(r.k.PutRows(r.s, table.region(), from.region(), r.longer(index), words, len(index)))
	number := map[int]int{} // of the row that is put to a place
	for i, place := range index {
		number[int(place)] = i
	}
	r.same("PutRows", table, func(at int) uint32 {
		if i, ok := number[at/words]; ok {
			return math.Float32bits(from.value(0, i*words+at%words))
		}
		return math.Float32bits(table.value(0, at))
	})
})
