package ssd_test

import (
	"math"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDHugeDirBudget checks that a directory may have a budget that is larger than any disk.
func TestSSDHugeDirBudget(t *testing.T) {
	for _, bytes := range []int64{1 << 44, 1 << 45, 1 << 50, 1 << 62, math.MaxInt64} {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: stressLayout, MemoryBytes: 8 << 20}
		o.SSD.DirBudgetBytes = bytes
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Errorf("%d bytes: %v", bytes, err)
			continue
		}
		rows := map[uint64]float32{}
		tabletest.CountRows(t, tab, rows, 0, 1000)
		tabletest.Commit(t, tab, nil)
		if err := tab.Close(); err != nil {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}
