package sparsetable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable"
)

// TestSSDDirsInAnyOrder: a table is found whatever the order of its directories;
// with the first of them missing, no new table is made in the others.
func TestSSDDirsInAnyOrder(t *testing.T) {
	at := t.TempDir()
	dirs := []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")}
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: dirs}}
	rows := map[uint64]float32{}
	trainInto(t, o, rows, 0, 3000)
	for _, order := range [][]int{{1, 0, 2}, {2, 1, 0}, {0, 2, 1}} {
		o.SSD.Dirs = []string{dirs[order[0]], dirs[order[1]], dirs[order[2]]}
		trainInto(t, o, rows, 1000*order[0], 500) // and reads all
		faults := 0
		if _, err := sparsetable.Verify(t.Context(), o, func(f sparsetable.Fault) { t.Error(f); faults++ }, nil); err != nil || faults > 0 {
			t.Error(err)
		}
	}
	if err := os.Rename(filepath.Join(at, "a"), filepath.Join(at, "x")); err != nil {
		t.Fatal(err)
	}
	for _, named := range [][]string{dirs, dirs[1:], {dirs[2]}} {
		o.SSD.Dirs = named
		if tab, err := sparsetable.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrFiles) {
			t.Errorf("%v: %v", named, err)
			if err == nil {
				_ = tab.Close()
			}
		}
	}
	o.SSD.Dirs = append([]string{filepath.Join(at, "x")}, dirs[1:]...)
	trainInto(t, o, rows, 0, 10)
}

// trainInto opens a table, compares its rows with rows, trains n from one on, and
// saves them.
func trainInto(t *testing.T, o sparsetable.Options, rows map[uint64]float32, from, n int) {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
		if found++; rows[key] != row[0] {
			t.Errorf("key %x holds %v, want %v", key, row[0], rows[key])
		}
		return nil
	})
	if err != nil || found != len(rows) {
		t.Errorf("%d rows, want %d: %v", found, len(rows), err)
	}
	countRows(t, tab, rows, from, n)
	if f, ok := tab.(sparsetable.Flusher); ok {
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := tab.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}

// countRows trains n rows: the first value of each counts how often.
func countRows(t *testing.T, tab sparsetable.Table, rows map[uint64]float32, from, n int) {
	t.Helper()
	keys := keysFrom(from, n)
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		rows[k]++
		ws.Row(i)[0] = rows[k]
		stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
}
