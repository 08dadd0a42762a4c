package ssd

import "aibox/sparsetable/internal/rowcache"

// While a table is being filled, nearly all rows in memory are new, and every slot has several of
// them. They are written before the cache is full, slot by slot in order, so that each write is a
// bucket with many new rows. When rows are evicted later, they are already clean.
const (
	// Sweeping begins when rows fill sweepFrom/16 of the cache, and dirty rows sweepDirty/16.
	sweepFrom  = 12
	sweepDirty = 8
	// A step examines sweepSlots slots, which takes some 100 microseconds, and writes at most
	// sweepBuckets of them.
	sweepSlots   = 1024
	sweepBuckets = 512
	// A slot is written if it has dirty rows for at least 1/sweepRows of a bucket, so that several
	// rows share the cost of rewriting the others.
	sweepRows = 4
	// If a round over all slots cleaned less than 1/sweepYield of the dirty rows, sweeping pauses
	// until their number has grown by half.
	sweepYield = 8
)

// sweep is the progress of sweeping. Guarded by rewrite.
type sweep struct {
	slot    uint32 // the next slot to examine
	cleaned int64  // rows cleaned in this round
	rest    int64  // sweeping pauses while there are no more dirty rows than this
}

// wantsSweep reports whether new rows should be written ahead.
func (t *Table) wantsSweep(st rowcache.Stats) bool {
	return st.Rows > t.fitRows.Load()/16*sweepFrom && st.Dirty > t.fitRows.Load()/16*sweepDirty
}

// sweepAhead writes the dirty rows of some slots. It returns false if that is not necessary or
// would not pay.
func (t *Table) sweepAhead() (worked bool, err error) {
	st := t.cache.Stats()
	if !t.wantsSweep(st) {
		return false, nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	s := &t.rewrite.sweep
	if st.Dirty <= s.rest {
		return false, nil
	}
	if err := t.keepShape(); err != nil {
		return false, err
	}
	w := &t.rewrite.rewriter
	w.slots = w.slots[:0]
	n := t.index.Slots()
	least := max(1, t.index.TargetRows()/sweepRows)
	most := int(min(sweepBuckets, t.evictStep()))
	for left := sweepSlots; left > 0 && s.slot < n && len(w.slots) < most; left-- {
		if t.cache.LeavingOfSlot(uint64(s.slot), t.index.MaskOf(s.slot)) >= least {
			w.slots = append(w.slots, s.slot)
		}
		s.slot++
	}
	before := w.counts.flushedRows
	if err := t.rewriteSlots(w.slots, nil); err != nil {
		return false, err
	}
	s.cleaned += w.counts.flushedRows - before
	if s.slot >= n {
		s.rest = 0
		if s.cleaned < st.Dirty/sweepYield {
			s.rest = st.Dirty + st.Dirty/2
		}
		s.slot, s.cleaned = 0, 0
	}
	return true, nil
}
