package plan

import (
	"testing"

	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// tableOf returns a table in one directory.
func tableOf(l layout.Layout, unit int) Table {
	return Table{Layout: l, Unit: unit, Dirs: 1, Policy: rowcache.Lookahead}
}

// targetOf returns the target sizes of buckets and filters of a table with that many rows, the size
// of the index that results, and its maximum.
func targetOf(l layout.Layout, unit int, budget, rows int64) (targetRows, filterBytes int, limit int64) {
	p := tableOf(l, unit).Of(budget, rows, 0)
	return p.targetRows, p.filterBytes, p.Shape.allowed(p.IndexLimits(), p.filterBytes)
}

// The shape of buckets depends on the size of rows and on the device's unit.
func TestShape(t *testing.T) {
	for _, c := range []struct {
		unit, values                    int
		small, large, huge, filterBytes int
	}{
		{512, 1, 49, 146, 585, 64}, // 28 bytes with the key
		{512, 20, 13, 39, 157, 16}, // 104
		{512, 64, 8, 14, 58, 8},    // 280
		{512, 128, 7, 7, 30, 8},    // 536
		{512, 1024, 3, 3, 3, 8},    // 4,120
		{512, 60_000, 1, 1, 1, 8},  // 240 KB
		{2048, 20, 15, 39, 157, 16},
		{4096, 1, 109, 146, 585, 64},
		{4096, 20, 30, 39, 157, 32},
		{4096, 64, 11, 14, 58, 8},
		{4096, 128, 7, 7, 30, 8},
		{4096, 300, 3, 3, 13, 8},
		{4096, 1024, 3, 3, 3, 8},
		{4096, 60_000, 1, 1, 1, 8},
	} {
		l := layout.Layout{ValueDim: c.values}
		s := ShapeOf(l, c.unit)
		if s.Small != c.small || s.Large != c.large || s.Huge != c.huge || s.filterBytes != c.filterBytes {
			t.Errorf("units of %d, %d values: %+v; want %+v", c.unit, c.values, s, c)
		}
	}
}

// As a table grows, index and filters stay within their share as long as buckets are not huge,
// filters only become smaller, and buckets only larger. Under the budgets of the benchmark they
// take what the documentation says, at most 2 bytes a key.
func TestShapeTarget(t *testing.T) {
	l := layout.Layout{ValueDim: 16, StateDim: 4}
	huge := ShapeOf(l, 512).Huge
	for i, budget := range []int64{5 << 20, 16 << 20, 64 << 20, 256 << 20, 5 << 20, 16 << 20, 64 << 20, 256 << 20} {
		unit := 512
		if i >= 4 {
			unit = 4096
		}
		lastRows, lastFilter := 0, 1<<10
		for rows := int64(1000); rows < 1e9; rows += rows / 7 {
			target, filter, limit := targetOf(l, unit, budget, rows)
			if target < lastRows || filter > lastFilter {
				t.Fatalf("budget %d: from %d rows and %d bytes to %d and %d, at %d rows", budget, lastRows, lastFilter, target, filter, rows)
			}
			lastRows, lastFilter = target, filter
			takes := slots.BytesFor(slots.Options{TargetRows: target, FilterBytes: filter}, rows)
			if takes > limit && target < huge {
				t.Fatalf("budget %d, %d rows: index of %d bytes, %d allowed", budget, rows, takes, limit)
			}
			if perKey := float64(takes) / float64(rows); rows > 1e6 && perKey > 2 {
				t.Fatalf("budget %d, %d rows: %.2f bytes a key", budget, rows, perKey)
			}
		}
	}
	for _, c := range []struct {
		unit         int
		budget       int64
		rows, filter int
		mib          float64
	}{
		{512, 256 << 20, 13, 16, 35.5}, {512, 64 << 20, 13, 0, 12.0}, {512, 16 << 20, 39, 0, 4.0},
		{4096, 256 << 20, 30, 32, 25.5}, {4096, 64 << 20, 30, 16, 15.4}, {4096, 16 << 20, 39, 0, 4.0},
	} {
		target, filter, _ := targetOf(l, c.unit, c.budget, 20e6)
		mib := float64(slots.BytesFor(slots.Options{TargetRows: target, FilterBytes: filter}, 20e6)) / (1 << 20)
		t.Logf("units of %d, %d MiB: %d rows a slot, filters of %d bytes, %.1f MiB, %.2f bytes a key", c.unit, c.budget>>20, target, filter, mib, mib*(1<<20)/20e6)
		if target != c.rows || filter != c.filter || mib > c.mib+.1 || mib < c.mib-.1 {
			t.Errorf("units of %d, %d MiB: %d rows, filters of %d bytes, %.2f MiB; want %+v", c.unit, c.budget>>20, target, filter, mib, c)
		}
	}
}

// An empty table needs little memory, and the error about a budget that is too small says how much
// is needed.
func TestSmallestBudget(t *testing.T) {
	l := layout.Layout{ValueDim: 16, StateDim: 4}
	n := tableOf(l, 512).Smallest(Load{})
	if n > 4<<20 || n < 2<<20 {
		t.Errorf("an empty table needs %d bytes", n)
	}
}
