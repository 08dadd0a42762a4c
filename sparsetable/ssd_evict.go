package sparsetable

import (
	"slices"

	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

const (
	// evictBatch bounds the victims of one step, for which rewrite is held: a
	// few milliseconds of reads and writes.
	evictBatch = 4096
	// roomShare is the part of the cache that a Pull without room frees at
	// once, so that the next one finds some.
	roomShare = 64
	// A step may cost this part of all buckets, but its reads are to keep a
	// device busy.
	stepShare    = 16
	minEvictStep = 256
)

// evictStep is how many rows leave the cache before space is looked after. Each
// may cost a bucket, so that a step adds a small part at most to what a small
// table takes.
func (t *ssd) evictStep() int64 {
	return min(max(int64(t.index.Slots())/stepShare, minEvictStep), evictBatch)
}

// makeRoom lets at least one row leave the cache, n if it can and if that is
// no more than a step.
func (t *ssd) makeRoom(n int) error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.split(); err != nil {
		return err
	}
	want := int(min(max(int64(n), t.cache.Stats().FitRows/roomShare), t.evictStep()))
	dropped, err := t.evict(want)
	if st := t.cache.Stats(); err == nil && dropped == 0 && st.Rows >= st.FitRows {
		err = errNoVictims // else there is room by now
	}
	return err
}

// evict lets up to n rows leave the cache, those that the policy misses least,
// and returns their number. REQUIRES: rewrite is held.
func (t *ssd) evict(n int) (dropped int, err error) {
	w := &t.rewrite.rewriter
	for dropped < n {
		w.victims = t.cache.Victims(min(n-dropped, evictBatch), w.victims[:0])
		if len(w.victims) == 0 {
			return dropped, nil
		}
		if t.readOnly {
			err = nil // dirty rows stay, they came with the snapshot
		} else {
			err = t.clean(w.victims)
		}
		left := t.cache.Drop(w.victims)
		dropped += left
		if err != nil || left == 0 {
			return dropped, err
		}
	}
	return dropped, nil
}

// clean writes the dirty rows of refs to SSD, along with those of the same
// slots. REQUIRES: rewrite is held, and refs are taken.
func (t *ssd) clean(refs []uint32) error {
	if s := t.snap.Load(); s != nil {
		s.save(refs)
	}
	w := &t.rewrite.rewriter
	w.slots = w.slots[:0]
	t.cache.Visit(refs, func(_ int, e rowcache.Entry) rowcache.Change {
		if e.Flags&rowcache.Dirty == 0 || e.Pins > 0 {
			return rowcache.Change{}
		}
		if !t.trained(e.Row) {
			return rowcache.Change{Clear: rowcache.Dirty} // a placeholder
		}
		// Rewriters alone change the index, so no lock is needed to read it.
		w.slots = append(w.slots, t.index.Slot(slots.Hash(e.Key)))
		return rowcache.Change{}
	})
	slices.Sort(w.slots)
	w.slots = slices.Compact(w.slots)
	return t.rewriteSlots(w.slots, nil)
}
