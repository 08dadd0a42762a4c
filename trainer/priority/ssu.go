package priority

import (
	"math/bits"

	"aibox/internal/splitmix"
)

// ssu has rows that were accessed in a sub-sample of all accesses.
type ssu struct {
	entries
	accesses
	random uint64 // state of the generator (package splitmix)
	rows   int    // how many rows are chosen at a time; 0 if unknown
}

func (s *ssu) draw() uint64 {
	s.random += splitmix.Step
	return splitmix.Mix(s.random)
}

// below draws a number below n.
func (s *ssu) below(n int) int {
	high, _ := bits.Mul64(s.draw(), uint64(n))
	return int(high)
}

// End implements List. Every access is in the sample with probability 1/2 (the paper has a sampling
// period of 2), so a row with n accesses is in it with probability 1 - 2^-n.
func (s *ssu) End(keys []uint64, rows Rows) {
	for i, key := range keys {
		n := min(s.in(i, rows), 63)
		if n == 0 || s.draw()&(1<<n-1) == 0 || s.find(key) >= 0 {
			continue
		}
		if s.full() {
			s.remove(s.below(len(s.keys)))
		}
		s.add(key)
	}
}

func (s *ssu) full() bool { return s.entries.full() || s.rows > 0 && len(s.keys) >= s.rows }

// Resize implements List.
func (s *ssu) Resize(rows int64) {
	s.rows = int(max(rows, 1))
	for len(s.keys) > s.rows {
		s.remove(s.below(len(s.keys)))
	}
}

// Choose implements List.
func (s *ssu) Choose(n int) []uint64 {
	chosen := append([]uint64(nil), s.keys...)
	for len(chosen) > n { // the list is longer only if the table has shrunk since Resize
		at, last := s.below(len(chosen)), len(chosen)-1
		chosen[at], chosen = chosen[last], chosen[:last]
	}
	return chosen
}

// Bytes implements List.
func (s *ssu) Bytes() int64 { return s.entries.Bytes() + s.bytes() }
