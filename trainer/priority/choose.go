package priority

import "math"

// threshold returns the n-th largest of some non-negative scores, and how many scores equal to it
// are among the n largest. Non-negative floats compare like their bits, so each pass over the
// scores determines eight bits, the highest first. REQUIRES: 1 <= n <= len(scores).
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

// Choose implements List. It returns the keys of the entries with the highest scores, the first
// ones if scores are equal.
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

// dropHalf removes the half of the entries with the lowest scores, at least one.
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
