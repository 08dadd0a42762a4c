package numbering

import (
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// TestTable compares the table with a map over several passes, with key 0,
// neighbouring keys and a stamp that runs over.
func TestTable(t *testing.T) {
	random := testseed.Rand(t)
	table := new(Table)
	for pass := range uint64(6) {
		table.Reset(nil)
		numbers := map[uint64]int32{}
		var order, keys []uint64
		var want []int32
		for range 3000 << (pass % 3) {
			key := random.Uint64N(5000) << (20 * (pass % 2))
			n, known := numbers[key]
			if !known {
				n = int32(len(order))
				numbers[key] = n
				order = append(order, key)
			}
			keys, want = append(keys, key), append(want, n)
		}
		got := make([]int32, len(keys))
		for i := 0; i < len(keys); { // in pieces of all sizes
			n := min(1+random.IntN(100), len(keys)-i)
			table.Number(keys[i:i+n], got[i:i+n])
			i += n
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pass %d: the numbers of the keys differ from those of a map", pass)
		}
		if !slices.Equal(table.Keys(), order) {
			t.Fatalf("pass %d: %d keys, want %d in the order of first use", pass, len(table.Keys()), len(order))
		}
	}
}
