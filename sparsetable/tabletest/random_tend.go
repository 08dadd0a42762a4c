package tabletest

import (
	"errors"

	"aibox/sparsetable"
)

// flush writes all dirty rows, where the kind of table tells them from others.
func (r *runner) flush() {
	f, ok := r.table.(sparsetable.Flusher)
	if !ok {
		return
	}
	r.note("flush")
	err := f.Flush(r.t.Context())
	if len(r.pinned) > 0 {
		if !errors.Is(err, sparsetable.ErrPinned) {
			r.fatalf("Flush with pinned sets: %v", err)
		}
		return
	}
	if err != nil {
		r.fatalf("Flush: %v", err)
	}
	if n := r.table.Stats().DirtyRows; n > 0 {
		r.fatalf("%d rows are dirty after Flush", n)
	}
	r.sum.Flushes++
}

// compact empties what files it can, or those that are mostly dead, beside
// whatever the table does: sets may be pinned, a snapshot under way.
func (r *runner) compact() {
	gain := []float64{0.001, 0.2, 0.7}[r.rng.IntN(3)]
	p, err := sparsetable.Compact(r.t.Context(), r.table, gain, nil)
	if errors.Is(err, sparsetable.ErrUnsupported) {
		return
	}
	r.note("compact for a gain of %g: %+v", gain, p)
	if err != nil {
		r.fatalf("Compact: %v", err)
	}
	r.sum.Compactions += int64(p.Files)
}
