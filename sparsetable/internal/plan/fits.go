package plan

import "aibox/sparsetable/internal/slots"

// Load describes the use of a table for which a budget has to suffice.
type Load struct {
	Rows     int64 // of the table
	Slots    int64 // existing slots
	Resident int64 // rows in memory at a time
	Other    int64 // bytes for pulls
}

// Fits reports whether a budget suffices: whether buckets need not exceed the huge ones of the
// shape, and whether the cache that remains without filters holds the resident rows.
func (t Table) Fits(budget int64, need Load) bool {
	p := t.Of(budget, need.Rows, need.Slots)
	if slots.BytesFor(slots.Options{TargetRows: p.Shape.Huge}, need.Rows) > max(p.IndexLimit(), slots.BytesFor(slots.Options{}, 1)) {
		return false
	}
	o := p.CacheOptions()
	return o.MaxBytes >= o.MinBytes() && o.FitRowsIn(o.MaxBytes-need.Other-IndexSlackBytes) >= max(need.Resident, 1)
}

// Smallest is the smallest budget that fits, found by bisection. Because the
// parts of a budget are rounded to pages, it is exact only to a few pages.
func (t Table) Smallest(need Load) int64 {
	low, high := int64(0), int64(1)<<20
	for !t.Fits(high, need) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := (low + high) / 2; t.Fits(mid, need) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
