package distinct

import (
	"math"
	"testing"

	"aibox/sparsetable/internal/slots"
)

func TestDistinctKeys(t *testing.T) {
	for _, n := range []int{0, 1, 1000, maxSample - 1, 50_000, 400_000} {
		var d Keys
		for range 3 { // repetitions do not count
			for i := range n {
				key := uint64(i) * 0x9e3779b97f4a7c15
				d.Add(key, slots.Hash(key))
			}
		}
		got := d.Number()
		if n < maxSample && got != int64(n) {
			t.Errorf("%d keys, want exactly %d", got, n)
		}
		// The sample has half of its bound at least.
		if off := math.Abs(float64(got)/float64(max(n, 1)) - 1); n > 0 && off > 4/math.Sqrt(maxSample/2) {
			t.Errorf("%d keys, want %d: %.1f %% off", got, n, 100*off)
		}
		if len(d.keys) >= maxSample {
			t.Errorf("%d keys are kept", len(d.keys))
		}
	}
}
