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

// TestSSDHotRowsLeaveSpace checks that the clean rows that a snapshot saves do not fill a disk. On
// a disk with little free space, the snapshot saves only the rows that are not in buckets.
func TestSSDHotRowsLeaveSpace(t *testing.T) {
	const rows, changed = 20_000, 300
	for _, capacity := range []int64{0, 100 << 20} {
		dev, fs := blocktest.New(blocktest.Options{Dir: "/ssd"}), vfs.NewMem()
		o := sparsetable.Options{Layout: stressLayout, MemoryBytes: 32 << 20, SSD: sparsetable.SSDOptions{Dirs: []string{"/ssd"}}}
		open := func() sparsetable.Table {
			t.Helper()
			tab, err := openOn(t.Context(), o, []blockio.Device{dev}, fs)
			if err != nil {
				t.Fatal(err)
			}
			ssd.WaitRestored(tab)
			return tab
		}
		train := func(tab sparsetable.Table, n int) {
			t.Helper()
			ws, err := tab.Pull(t.Context(), tabletest.KeysFrom(0, n), sparsetable.PullCreate)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				st := stressLayout.Stats(ws.Row(i))
				st.Count++
				stressLayout.SetStats(ws.Row(i), st)
			}
			ws.Release()
		}
		tab := open()
		train(tab, rows)
		settle(t, tab)
		train(tab, changed)
		dev.SetCapacity(capacity)
		tabletest.Commit(t, tab, nil)
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		tab = open()
		if st := tab.Stats(); st.Rows != rows || (st.RestoredRows == changed) != (capacity > 0) || capacity == 0 && st.RestoredRows < rows/2 {
			t.Errorf("a disk of %d bytes: %d rows, %d of them restored", capacity, st.Rows, st.RestoredRows)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
