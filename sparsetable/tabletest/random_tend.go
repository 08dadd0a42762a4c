package tabletest

import (
	"errors"

	"aibox/sparsetable"
)

// flush writes all dirty rows, if the kind of table has dirty rows.
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

// compact empties all files that can be emptied, or only those with mostly dead buckets, while the
// table is in use: sets may be pinned, and a snapshot may be in progress.
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
