package ssd

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

const (
	// evictBatch bounds the victims of one step under rewrite: a few milliseconds of reads and
	// writes.
	evictBatch = 4096
	// A Pull without room frees 1/roomShare of the cache at once, so that the next Pull finds some.
	roomShare = 64
	// A step may rewrite 1/stepShare of all buckets, but at least as many as fill an append buffer,
	// within tinyEvictStep to minEvictStep rows. minEvictStep rows keep a device busy with reads.
	stepShare     = 64
	minEvictStep  = 256
	tinyEvictStep = 16
	// Clean rows are searched for only if at least 1/cleanShare of the idle rows is clean, or for
	// the other reason in cleanSearch.
	cleanShare = 8
	// If at least 1/enoughShare of the wanted rows was found clean, no dirty rows are evicted.
	// Otherwise the next cleanPause searches for clean rows are skipped.
	enoughShare = 4
	cleanPause  = 8
	// On a full disk, training leaves 1/readersShare of the cache to clean rows, so that other rows
	// can be read.
	readersShare = 8
)

// evictStep is how many rows may be evicted before the space on disk is checked. Each evicted row
// may cause a bucket to be written, so the number is bounded by a share of the table's slots: one
// step then adds little to the size of a small table. REQUIRES: rewrite or indexMu is held.
func (t *Table) evictStep() int64 {
	slotsNow := int64(t.index.Slots())
	few := int64(t.plan.BufferBytes) / max(t.files.LiveBytes()/slotsNow, 1)
	return min(max(slotsNow/stepShare, min(max(few, tinyEvictStep), minEvictStep)), evictBatch)
}

// stepBytes is the mean size in bytes of the buckets that a step rewrites, but at least the size of
// an append buffer. REQUIRES: rewrite or indexMu is held.
func (t *Table) stepBytes() int64 {
	return max(t.evictStep()*(t.files.LiveBytes()/int64(t.index.Slots())), int64(t.plan.BufferBytes))
}

// errSpaceUnchecked says that a holder of rewrite has more to write than one step allows: it has to release
// rewrite and call keepSpace before it continues, see inSteps.
var errSpaceUnchecked = errors.New("sparsetable: the space on disk has to be checked before more is written")

// mayWrite returns errSpaceUnchecked once a step's worth of bytes was written since the space on disk was
// last checked. Holders of rewrite call it before each batch if nothing else bounds the number of
// buckets that they write. REQUIRES: rewrite is held.
func (t *Table) mayWrite() error {
	if unchecked := t.uncheckedBytes.Load(); unchecked < int64(t.plan.BufferBytes) || unchecked < t.stepBytes() {
		return nil
	}
	return errSpaceUnchecked
}

// inSteps calls step with rewrite held until its error is not errSpaceUnchecked, and checks the space on
// disk between the calls. REQUIRES: rewrite is not held.
func (t *Table) inSteps(ctx context.Context, step func() error) error {
	once := func() error {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		return step()
	}
	for {
		if err := once(); !errors.Is(err, errSpaceUnchecked) {
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
}

// makeRoom evicts rows: n if possible, but at most a step's worth, and at least one. As long as
// there are clean rows among the next victims, it neither reads nor writes nor waits for a
// goroutine that does. Otherwise it writes rows and returns wrote as true; the caller must then
// check the space on disk. REQUIRES: changing is held.
func (t *Table) makeRoom(n int) (wrote bool, err error) {
	want := int(min(max(int64(n), t.cache.Stats().FitRows/roomShare), evictBatch))
	cleaned := t.dropClean(want, &t.pull.victims)
	if enough := int64(cleaned)*enoughShare >= int64(n); enough || t.pull.prefetching {
		if cleaned == 0 {
			return false, errNoVictims
		}
		return false, nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.keepShape(); err != nil {
		return true, err
	}
	dropped, err := t.evict(int(min(int64(want), t.evictStep())))
	st := t.cache.Stats()
	if dropped > 0 && errors.Is(err, bucketfile.ErrNoSpace) && (t.pull.reading || st.Dirty+st.InFlight <= st.FitRows-st.FitRows/readersShare) {
		err = nil // clean rows could be evicted
	}
	if err == nil && dropped+cleaned == 0 && st.Rows >= st.FitRows {
		err = errNoVictims // if Rows < FitRows, there is room by now
	}
	return true, err
}

// dropClean evicts up to n clean rows and returns their number. victims is the caller's scratch.
func (t *Table) dropClean(n int, victims *[]uint32) (dropped int) {
	if !t.search.worthSearching(t.cache.Stats(), n) || t.search.pause.Add(-1) >= 0 {
		return 0
	}
	*victims = t.cache.CleanVictims(n, (*victims)[:0])
	if len(*victims)*enoughShare < n {
		// All rows were examined and nearly none was clean: the next rows to leave are dirty.
		t.search.pause.Store(cleanPause)
	}
	t.rewrite.moving.Lock()
	defer t.rewrite.moving.Unlock()
	return t.cache.Drop(*victims)
}

// cleanSearch decides when to search for clean rows.
type cleanSearch struct {
	pause atomic.Int32 // the number of searches still to be skipped
	// creating says that the last Pull created more rows than it read buckets, so that
	// few of its rows will be written with buckets that it carries.
	creating atomic.Bool
}

// worthSearching reports whether n clean rows are worth a search. They are if many rows are clean. If
// announced passes need nearly all rows, few are clean, but those few are good victims if nobody
// needs them: the dirty rows that nobody needs were mostly pulled just now, and are about to be
// written without a read, with the buckets that their set carries. That does not hold for rows that
// were just created. If most are, dirty rows must be evicted all the time, and not only once no
// clean row is left.
func (s *cleanSearch) worthSearching(st rowcache.Stats, n int) bool {
	return st.Idle-st.Dirty >= st.Idle/cleanShare || !s.creating.Load() && st.Loose*enoughShare >= int64(n)
}

// evict evicts up to n rows that the policy chooses and returns their number. REQUIRES: rewrite is
// held.
func (t *Table) evict(n int) (dropped int, err error) {
	w := &t.rewrite.rewriter
	for dropped < n {
		w.victims = t.cache.Victims(min(n-dropped, evictBatch), w.victims[:0])
		if len(w.victims) == 0 {
			return dropped, nil
		}
		err = t.clean(w.victims)
		left := t.cache.Drop(w.victims)
		dropped += left
		if err != nil || left == 0 {
			return dropped, err
		}
	}
	return dropped, nil
}

// clean writes the dirty rows of refs to SSD, along with the other dirty rows of
// their slots. REQUIRES: rewrite is held, and refs are from the cache's Victims, or
// idle.
func (t *Table) clean(refs []uint32) error {
	w := &t.rewrite.rewriter
	w.slots = w.slots[:0]
	t.cache.Visit(refs, func(_ int, e rowcache.Entry) rowcache.Change {
		if e.Flags&rowcache.Dirty == 0 || e.Pins > 0 {
			return rowcache.Change{}
		}
		if !t.trained(e.Row) {
			return rowcache.Change{Clear: rowcache.Dirty} // a placeholder
		}
		// Only holders of rewrite change the index, so no lock is needed to read it.
		w.slots = append(w.slots, t.index.Slot(t.hash.Of(e.Key)))
		return rowcache.Change{}
	})
	slices.Sort(w.slots)
	w.slots = slices.Compact(w.slots)
	return t.rewriteSlots(w.slots, nil)
}
