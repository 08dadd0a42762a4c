package reader

import (
	"runtime"
	"slices"
	"testing"

	"aibox/reader/rowschema"
)

// TestPassMemoryBytes compares what a pass says it takes with what the heap grows
// by for it.
func TestPassMemoryBytes(t *testing.T) {
	const n, fields = 4096, 26
	make1 := func() *Pass {
		p := &Pass{Keys: make([]uint64, 27_000), Batches: make([]Batch, 4)}
		for i := range p.Batches {
			p.Batches[i] = Batch{
				N: n, Labels: make([]float32, n), Weights: make([]float32, n), Dense: make([]float32, 13*n),
				Offsets: make([]int32, n*fields+1), Index: make([]int32, n*fields), BagWeights: make([]float32, n*fields),
				Rows: make([]int32, 9_000), Groups: make([]uint64, n), Columns: [][]string{make([]string, n)},
			}
			for e := range n {
				p.Batches[i].Columns[0][e] = string(make([]byte, 64))
			}
		}
		return p
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what pools of earlier tests held goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var says, took int64
	for range 10 { // what other tests left may be freed meanwhile
		before := heap()
		p := make1()
		took, says = heap()-before, p.MemoryBytes()
		runtime.KeepAlive(p)
		if says >= took*9/10 && says <= took*11/10 {
			return
		}
	}
	t.Errorf("a pass says %d bytes, the heap grew by %d", says, took)
}

// TestRowsAreInOrderOfFirstUse checks what Batch and Pass promise.
func TestRowsAreInOrderOfFirstUse(t *testing.T) {
	o := testOptions(rowschema.CriteoSchema(), write(t, t.TempDir(), "data", criteoLines(500)))
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
