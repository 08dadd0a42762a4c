package flow

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
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

// holding is a table that holds the rows of so many keys.
type holding struct {
	sparsetable.Table
	keys    int
	lacking int64
	pulls   int
}

func (h *holding) Pull(_ context.Context, keys []uint64, _ sparsetable.PullMode) (*sparsetable.WorkingSet, error) {
	if h.pulls++; len(keys) > h.keys {
		return nil, &sparsetable.BudgetError{FitRows: h.keys, LackingBytes: h.lacking}
	}
	return nil, nil
}

// TestLimitIsRaised checks that passes that were divided because others took memory for a while are
// pulled as a whole again once that memory is free, and that this is attempted less and less often
// while it fails. If the budget is too small, passes stay divided.
func TestLimitIsRaised(t *testing.T) {
	table := &holding{keys: 10, lacking: 1}
	p := newPuller(&Stages{Table: table, Limit: new(Limit), Log: slog.New(slog.DiscardHandler), Ranges: gpu.RangerOf(nil)}, sparsetable.PullLookup, nil)
	// pulls says how many Pulls a pass of 8 mini-batches of 10 keys each takes.
	pulls := func() int {
		pass := &reader.Pass{}
		for range 8 {
			var b reader.Batch
			for range 10 {
				b.Rows = append(b.Rows, int32(len(pass.Keys)))
				pass.Keys = append(pass.Keys, uint64(len(pass.Keys)))
			}
			pass.Batches = append(pass.Batches, b)
		}
		table.pulls = 0
		if err := p.pull(t.Context(), pass, func(Pulled) error { p.ended.Add(1); return nil }); err != nil {
			t.Fatal(err)
		}
		return table.pulls
	}
	vain := 0
	for range 1000 {
		if n := pulls(); n < 8 {
			t.Fatalf("a pass of 80 keys takes %d Pulls of 10", n)
		} else if n > 8 {
			vain++
		}
	}
	if vain < 3 || vain > 20 {
		t.Errorf("larger Pulls were tried in vain in %d of 1000 passes", vain)
	}
	table.keys = 80
	for range 2 * mostFits {
		pulls()
	}
	if n := pulls(); n != 1 {
		t.Errorf("once there is memory again, a pass takes %d Pulls", n)
	}
	table.keys, table.lacking = 10, 0
	pulls()
	table.keys = 80
	for range 2 * mostFits {
		if n := pulls(); n != 8 {
			t.Fatalf("where the budget is too small, a pass takes %d Pulls", n)
		}
	}
}
