package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCopier: slices of all lengths are copied, and found in a table, and nothing behind them is written.
func TestCopier(t *testing.T) {
	var c Copier
	rng := rand.New(rand.NewPCG(1, 2))
	table := make([]int32, 1000)
	for i := range table {
		table[i] = rng.Int32()
	}
	for range 20 {
		var got, want [][]int32
		var floats [][]float32
		for range rng.IntN(6) {
			n := []int{0, 1, 5, copyGrain - 1, copyGrain, 3*copyGrain + 7}[rng.IntN(6)]
			from, to := make([]int32, n), make([]int32, n+1)
			numbers, copies := make([]float32, n), make([]float32, n+1)
			for i := range from {
				from[i], numbers[i] = rng.Int32N(1000), rng.Float32()
			}
			result := append(slices.Clone(from), 0)
			if rng.IntN(2) == 0 {
				for i := range from {
					result[i] = table[from[i]]
				}
				c.Find(to, from, table)
			} else {
				CopyTo(&c, to, from)
			}
			CopyTo(&c, copies, numbers)
			got, want, floats = append(got, to), append(want, result), append(floats, append(numbers, 0), copies)
		}
		if rng.IntN(2) == 0 {
			c.Copy()
		} else {
			c.CopyBeside()
		}
		for i := range got {
			if !slices.Equal(got[i], want[i]) || !slices.Equal(floats[2*i], floats[2*i+1]) {
				t.Fatalf("slice %d of %d numbers", i, len(want[i])-1)
			}
		}
	}
}
