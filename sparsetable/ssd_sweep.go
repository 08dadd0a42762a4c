package sparsetable

import "aibox/sparsetable/internal/rowcache"

// While a table fills, nearly all rows in memory are new, and every slot has
// several: they are written slot by slot, in order, before the cache is full,
// a whole bucket of new rows at a time. Rows that leave later are clean then.
const (
	// sweepFrom is how full the cache is, in 1/16, when sweeping begins, and
	// sweepDirty how many of the rows it has room for are dirty, in 1/16.
	sweepFrom  = 12
	sweepDirty = 8
	// sweepSlots is how many slots are looked at in a step, some 100
	// microseconds, and sweepBuckets how many are written at most.
	sweepSlots   = 1024
	sweepBuckets = 512
	// A slot is written if it has at least this part of a bucket's rows to be
	// written: what the rest costs is shared by them.
	sweepRows = 4
	// A round over all slots that cleaned less than this part of the dirty rows
	// is the last, until there are half as many more.
	sweepYield = 8
)

// sweep is where sweeping stands, under rewrite.
type sweep struct {
	slot    uint32 // to be looked at next
	cleaned int64  // rows, in this round
	rest    int64  // dirty rows up to which there is nothing to be gained
}

// wantsSweep reports whether new rows should be written ahead.
func (t *ssd) wantsSweep(st rowcache.Stats) bool {
	return st.Rows > t.fitRows.Load()/16*sweepFrom && st.Dirty > t.fitRows.Load()/16*sweepDirty
}

// sweepAhead writes the dirty rows of some slots. It returns false if there is
// no need, or not enough to be gained.
func (t *ssd) sweepAhead() (worked bool, err error) {
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
	for left := sweepSlots; left > 0 && s.slot < n && len(w.slots) < sweepBuckets; left-- {
		if t.leavingRows(s.slot) >= least {
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

// leavingRows is how many dirty rows of a slot no pass in flight or announced
// needs. REQUIRES: rewrite is held, or indexMu.
func (t *ssd) leavingRows(slot uint32) (rows int) {
	t.cache.ForEachOfSlot(uint64(slot), slotMask(slot, t.index.Slots()), func(e rowcache.Entry) rowcache.Change {
		if e.Flags&rowcache.Dirty != 0 && e.Pins == 0 && !e.Needed {
			rows++
		}
		return rowcache.Change{}
	})
	return rows
}
