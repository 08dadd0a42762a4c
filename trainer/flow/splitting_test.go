package flow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/reader"
)

// TestSplitPass: the parts have the mini-batches of the pass in their order, each
// with the same keys, and are as large as they may be.
func TestSplitPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 1))
	for range 300 {
		p := &reader.Pass{Seq: 7, Bytes: 1234, End: &reader.Cursor{}}
		keys := 1 + rng.IntN(60)
		for k := range keys {
			p.Keys = append(p.Keys, uint64(1000+k))
		}
		for range 1 + rng.IntN(12) {
			rows := rng.Perm(keys)[:1+rng.IntN(keys)]
			b := reader.Batch{N: len(rows)}
			for _, r := range rows {
				b.Rows = append(b.Rows, int32(r))
			}
			p.Batches = append(p.Batches, b)
		}
		before := make([][]int32, len(p.Batches))
		for i, b := range p.Batches {
			before[i] = slices.Clone(b.Rows)
		}
		most := 1 + rng.IntN(keys)
		next := 0
		parts := splitPass(p, most)
		for i, part := range parts {
			if last := i == len(parts)-1; last != (part.End == p.End) || !last && part.End != nil {
				t.Fatalf("part %d of %d has the cursor %p, the pass %p", i+1, len(parts), part.End, p.End)
			}
			if part.Seq != 7 || part.Bytes != 1234 || len(part.Batches) == 0 || len(part.Batches) > 1 && len(part.Keys) > most {
				t.Fatalf("a part of %d mini-batches with %d keys, %d may be; %+v", len(part.Batches), len(part.Keys), most, part)
			}
			seen := map[uint64]bool{}
			for _, k := range part.Keys {
				seen[k] = true
			}
			for _, b := range part.Batches {
				for i, r := range b.Rows {
					if part.Keys[r] != p.Keys[before[next][i]] {
						t.Fatalf("mini-batch %d: row %d has another key", next, i)
					}
				}
				next++
			}
			if len(seen) != len(part.Keys) {
				t.Fatal("a key comes twice")
			}
			if next < len(p.Batches) { // the next mini-batch had no room
				for _, r := range before[next] {
					seen[p.Keys[r]] = true
				}
				if len(seen) <= most {
					t.Fatalf("a part ends though %d keys would fit %d", len(seen), most)
				}
			}
		}
		if next != len(p.Batches) {
			t.Fatalf("%d of %d mini-batches", next, len(p.Batches))
		}
		for i, b := range p.Batches {
			if !slices.Equal(b.Rows, before[i]) {
				t.Fatal("the pass was changed")
			}
		}
	}
}
