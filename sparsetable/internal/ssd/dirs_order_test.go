package ssd_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDDirsInAnyOrder checks that a table is found in whatever order its directories are given,
// and that no new table is made in the other directories if the first one is missing.
func TestSSDDirsInAnyOrder(t *testing.T) {
	at := t.TempDir()
	dirs := []string{filepath.Join(at, "a"), filepath.Join(at, "b"), filepath.Join(at, "c")}
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: dirs}}
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 3000)
	for _, order := range [][]int{{1, 0, 2}, {2, 1, 0}, {0, 2, 1}} {
		o.SSD.Dirs = []string{dirs[order[0]], dirs[order[1]], dirs[order[2]]}
		tabletest.CountInto(t, o, rows, 1000*order[0], 500) // and reads all
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
	tabletest.CountInto(t, o, rows, 0, 10)
}
