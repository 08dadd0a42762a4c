package ssd_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDSnapshotPages rewrites every bucket, so that every page of the index changes, while a
// snapshot is being written. The copies of pages, and all memory, must stay within their budgets,
// whether rows can leave the cache or all of them are pinned.
func TestSSDSnapshotPages(t *testing.T) {
	const rows, step = 400_000, 20_000
	for _, pinned := range []bool{false, true} {
		l := sparsetable.Layout{ValueDim: 16}
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: "/ssd0", Layout: l, MemoryBytes: 14 << 20}
		tab, err := openOn(t.Context(), o, []blockio.Device{blocktest.New(blocktest.Options{Dir: "/ssd0"})}, vfs.NewMem())
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < rows; from += step {
			if err := trainSpread(t.Context(), tab, from, step); err != nil {
				t.Fatal(err)
			}
		}
		if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held []*sparsetable.WorkingSet
		for from := step; pinned; from += 1000 {
			keys := make([]uint64, 1000)
			for i := range keys {
				keys[i] = tabletest.SpreadKey(from + i)
			}
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
			if err != nil {
				break // the cache is full of pinned rows
			}
			held = append(held, ws)
		}
		p, err := ssd.SnapshotPeak(t.Context(), tab)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("pinned %v: %+v, budget %d", pinned, p, o.MemoryBytes)
		if p.MemoryBytes > o.MemoryBytes || p.CopiedBytes > p.ReservedBytes {
			t.Errorf("pinned %v: %d bytes with a budget of %d; copies of pages took %d bytes of %d",
				pinned, p.MemoryBytes, o.MemoryBytes, p.CopiedBytes, p.ReservedBytes)
		}
		if !pinned && !p.Waited {
			t.Error("the copies of pages were never as many as they may be: the table is too small for this test")
		}
		if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
			t.Errorf("pinned %v: after the snapshot, %d bytes with a budget of %d", pinned, st.MemoryBytes, st.BudgetBytes)
		}
		for _, ws := range held {
			ws.Release()
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
