package sparsetable

import "context"

// SetShape makes buckets of a table on SSD that large, on average over slots,
// as if rows were larger, and gives index and filters that many bytes of its
// memory.
func SetShape(tab Table, small, large, huge int, indexBytes int64) {
	t := tab.(*ssd)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	s := &t.plan.shape
	s.small, s.large, s.huge = small, large, huge
	if indexBytes > 0 {
		t.plan.sharedBytes = int64(float64(indexBytes) / indexShare)
	}
}

// Reshape splits or merges slots until none is due.
func Reshape(ctx context.Context, tab Table) error {
	t := tab.(*ssd)
	for more := true; more; {
		var err error
		if more, err = t.reshape(); err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return tableError(err)
		}
	}
	return nil
}

// ShapeOf returns small, large and huge of rows of that layout in units of that
// many bytes, and the filters' bytes.
func ShapeOf(l Layout, unit int) (small, large, huge, filterBytes int) {
	s := shapeOf(l, unit)
	return s.small, s.large, s.huge, s.filterBytes
}

// TargetOf is what buckets and filters of a table of so many rows should be, and
// what the index then takes, of what it may take.
func TargetOf(l Layout, unit int, budget, rows int64) (targetRows, filterBytes int, limit int64) {
	o := Options{Dir: "/table", MemoryBytes: budget}
	o.ensureSSDDefaults()
	p := planSSD(budget, l, unit, o.SSD, rows, 0)
	return p.targetRows, p.filterBytes, p.shape.allowed(p.indexLimits(), p.filterBytes)
}
