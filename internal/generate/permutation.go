package generate

import "math/bits"

// permutation maps [0,n) onto itself in a random order, without a table. Each round is a
// bijection of the numbers below the next power of two (add, multiply by an odd number,
// fold the high bits onto the low ones). A result that is not below n goes through the
// rounds again; on average this takes fewer than two times.
type permutation struct {
	n, mask uint64
	fold    int
	rounds  [3]struct{ add, mul uint64 }
}

func newPermutation(n int64, key uint64) permutation {
	width := bits.Len64(uint64(n - 1))
	p := permutation{n: uint64(n), mask: 1<<width - 1, fold: width/2 + 1}
	for i := range p.rounds {
		p.rounds[i].add = hash(key, uint64(2*i))
		p.rounds[i].mul = hash(key, uint64(2*i+1)) | 1
	}
	return p
}

func (p *permutation) at(x uint64) uint64 {
	for {
		for i := range p.rounds {
			x = (x + p.rounds[i].add) * p.rounds[i].mul & p.mask
			x ^= x >> p.fold
		}
		if x < p.n {
			return x
		}
	}
}
