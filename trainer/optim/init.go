package optim

import (
	"math"

	"aibox/internal/splitmix"
)

const (
	rowPurpose = 0x726f777320696e69 // "rows ini": makes these numbers independent of other uses of the seed

	// initTerms is how many 16-bit numbers, from two hashes, are added up for one value.
	initTerms = 8
)

// NewInit returns the function that gives new rows their values: independent, nearly normal draws
// with mean 0 and the given standard deviation, which depend only on seed, key and position.
//
// A value is the centred and scaled sum of eight uniform 16-bit numbers (the Irwin–Hall
// distribution: excess kurtosis -0.15, no value beyond 4.9 standard deviations). Everything before
// the last product is integer arithmetic, so the bits are the same everywhere.
func NewInit(seed uint64, stddev float64) func(key uint64, values []float32) {
	// The variance of a sum of n uniform integers below 2^16 is n (2^32-1)/12. The factor 2 makes
	// the centred sum an integer.
	scale := stddev / (2 * math.Sqrt(initTerms*float64(1<<32-1)/12))
	stream := splitmix.Mix(seed + rowPurpose)
	return func(key uint64, values []float32) {
		state := splitmix.Mix(key ^ stream)
		for i := range values {
			state += splitmix.Step
			a := splitmix.Mix(state)
			state += splitmix.Step
			b := splitmix.Mix(state)
			centred := 2*(sum16(a)+sum16(b)) - initTerms*(1<<16-1)
			values[i] = float32(float64(centred) * scale)
		}
	}
}

// sum16 adds up the four 16-bit parts of h.
func sum16(h uint64) int64 {
	return int64(h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48)
}
