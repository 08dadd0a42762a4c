package priority

import "math"

// threshold returns the n-th largest of some scores, none of which is negative, and how many
// scores that are equal to it are among the n largest. A float that is not negative compares as
// its bits do, so a pass over the scores finds eight of the bits, the highest first.
// REQUIRES: 1 <= n <= len(scores).
func threshold(scores []float32, n int) (least float32, equal int) {
	var prefix uint32
	for shift := 24; shift >= 0; shift -= 8 {
		var counts [256]int
		for _, s := range scores {
			if b := math.Float32bits(s); shift == 24 || b>>(shift+8) == prefix {
				counts[b>>shift&0xFF]++
			}
		}
		digit := len(counts) - 1
		for ; counts[digit] < n; digit-- {
			n -= counts[digit]
		}
		prefix = prefix<<8 | uint32(digit)
	}
	return math.Float32frombits(prefix), n
}

// Choose implements List: the keys of the entries with the highest scores; of those that are
// equal, the first.
func (e *entries) Choose(n int) []uint64 {
	if n = min(n, len(e.keys)); n <= 0 {
		return nil
	}
	least, equal := threshold(e.score, n)
	chosen := make([]uint64, 0, n)
	for at, s := range e.score {
		switch {
		case s == 0 || s < least:
			continue
		case s == least:
			if equal == 0 {
				continue
			}
			equal--
		}
		chosen = append(chosen, e.keys[at])
	}
	return chosen
}

// dropHalf removes the half of the entries with the lowest scores, one at least.
func (e *entries) dropHalf() {
	keep := len(e.keys) / 2
	least, equal := float32(math.Inf(1)), 0
	if keep > 0 {
		least, equal = threshold(e.score, keep)
	}
	n := 0
	for at, s := range e.score {
		if s == least && equal > 0 {
			equal--
		} else if !(s > least) {
			continue
		}
		e.keys[n], e.score[n] = e.keys[at], s
		copy(e.baseOf(n), e.baseOf(at))
		n++
	}
	e.keys, e.score, e.base = e.keys[:n], e.score[:n], e.base[:n*e.words]
	e.rehash(len(e.index))
}
