package reader

import (
	"math"
	"slices"
	"testing"
)

// TestKeyTable compares the table with a map over several passes, with key 0,
// neighbouring keys and a stamp that runs over.
func TestKeyTable(t *testing.T) {
	table := &keyTable{stamp: math.MaxUint32 - 2}
	for pass := range uint64(6) {
		table.reset(nil)
		numbers := map[uint64]int32{}
		var order, keys []uint64
		var want []int32
		for i := range uint64(3000) << (pass % 3) {
			key := random(1, 1, pass, i) % 5000 << (20 * (pass % 2))
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
			n := min(1+int(random(1, 2, pass, uint64(i))%100), len(keys)-i)
			table.numberAll(keys[i:i+n], got[i:i+n])
			i += n
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pass %d: the numbers of the keys differ from those of a map", pass)
		}
		if !slices.Equal(table.keys, order) {
			t.Fatalf("pass %d: %d keys, want %d in the order of first use", pass, len(table.keys), len(order))
		}
	}
}

// TestRowsAreInOrderOfFirstUse checks what Batch and Pass promise.
func TestRowsAreInOrderOfFirstUse(t *testing.T) {
	o := testOptions(CriteoSchema(), write(t, t.TempDir(), "data", criteoLines(500)))
	o.BatchSize, o.BatchesPerPass = 30, 3
	passes, _ := mustRead(t, o)
	for _, p := range passes {
		seen := 0 // keys of the pass
		for i := range p.Batches {
			b := &p.Batches[i]
			rows := 0
			for _, row := range b.Index {
				if int(row) > rows {
					t.Fatalf("row %d is used before row %d", row, rows)
				}
				rows = max(rows, int(row)+1)
			}
			if rows != len(b.Rows) || int(b.Offsets[len(b.Offsets)-1]) != b.Features() {
				t.Fatalf("%d rows, used are %d", len(b.Rows), rows)
			}
			for _, key := range b.Rows {
				if int(key) > seen {
					t.Fatalf("key %d is used before key %d", key, seen)
				}
				seen = max(seen, int(key)+1)
			}
			if sorted := slices.Sorted(slices.Values(b.Rows)); len(slices.Compact(sorted)) != len(b.Rows) {
				t.Fatal("a key has two rows")
			}
		}
		if seen != len(p.Keys) {
			t.Fatalf("%d keys, used are %d", len(p.Keys), seen)
		}
		if sorted := slices.Sorted(slices.Values(p.Keys)); len(slices.Compact(sorted)) != len(p.Keys) {
			t.Fatal("a key occurs twice")
		}
	}
}
