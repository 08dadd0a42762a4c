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
	// evictBatch bounds the victims of one step, for which rewrite is held: a
	// few milliseconds of reads and writes.
	evictBatch = 4096
	// A Pull without room frees one part in roomShare of the cache at once, so that
	// the next one finds some.
	roomShare = 64
	// A step may rewrite one part in stepShare of all buckets. It has at least
	// minEvictStep rows, so that its reads keep a device busy, or in a small table as
	// many as fill an append buffer, but not fewer than tinyEvictStep.
	stepShare     = 64
	minEvictStep  = 256
	tinyEvictStep = 16
	// Clean rows are looked for only if at least one part in cleanShare of the idle
	// rows is clean, or if they are worth it for another reason, see cleanSearch.
	cleanShare = 8
	// If at least one part in enoughShare of the wanted rows was found clean, no
	// dirty rows leave. Otherwise clean rows are not looked for the next cleanPause
	// times.
	enoughShare = 4
	cleanPause  = 8
	// Training on a full disk leaves one part in readersShare of the cache to clean
	// rows, so that other rows can be read.
	readersShare = 8
)

// evictStep is how many rows may leave the cache before the space on disk is checked.
// Each row that leaves may cause a bucket to be written, so the number is bounded by a
// share of the table's slots: one step then adds little to what a small table takes.
// REQUIRES: rewrite is held, or indexMu.
func (t *Table) evictStep() int64 {
	slotsNow := int64(t.index.Slots())
	few := int64(t.plan.BufferBytes) / max(t.files.LiveBytes()/slotsNow, 1)
	return min(max(slotsNow/stepShare, min(max(few, tinyEvictStep), minEvictStep)), evictBatch)
}

// stepBytes is how many bytes of buckets a step rewrites on average, but at least the
// size of an append buffer. REQUIRES: rewrite is held, or indexMu.
func (t *Table) stepBytes() int64 {
	return max(t.evictStep()*(t.files.LiveBytes()/int64(t.index.Slots())), int64(t.plan.BufferBytes))
}

// errUnpaid says that a holder of rewrite has more to write than a step: it has to give
// rewrite back and call keepSpace before it goes on, see inSteps.
var errUnpaid = errors.New("sparsetable: the space on disk has to be checked before more is written")

// mayWrite returns errUnpaid once a step was written since the space on disk was last
// checked. Whoever holds rewrite and writes buckets whose number has no other bound asks
// it before each batch of them. REQUIRES: rewrite is held.
func (t *Table) mayWrite() error {
	if unpaid := t.unpaid.Load(); unpaid < int64(t.plan.BufferBytes) || unpaid < t.stepBytes() {
		return nil
	}
	return errUnpaid
}

// inSteps calls step, which gets rewrite, until its error is not errUnpaid, and checks
// the space on disk between the calls. REQUIRES: rewrite is not held.
func (t *Table) inSteps(ctx context.Context, step func() error) error {
	once := func() error {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		return step()
	}
	for {
		if err := once(); !errors.Is(err, errUnpaid) {
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
}

// makeRoom lets rows leave the cache: n of them where that is possible and not more
// than a step, and at least one. As long as there are clean rows among those that are
// next to leave, it neither reads nor writes nor waits for a goroutine that does. Where
// there were none, it has written rows, returns wrote as true, and the caller must
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
		err = nil // clean rows could leave
	}
	if err == nil && dropped+cleaned == 0 && st.Rows >= st.FitRows {
		err = errNoVictims // otherwise there is room by now
	}
	return true, err
}

// dropClean lets up to n clean rows leave the cache and returns their number.
// victims is the caller's scratch.
func (t *Table) dropClean(n int, victims *[]uint32) (dropped int) {
	if !t.search.worth(t.cache.Stats(), n) || t.search.pause.Add(-1) >= 0 {
		return 0
	}
	*victims = t.cache.CleanVictims(n, (*victims)[:0])
	if len(*victims)*enoughShare < n {
		// It has looked at all rows and found nearly none: the rows that are next
		// to leave are dirty.
		t.search.pause.Store(cleanPause)
	}
	t.rewrite.moving.Lock()
	defer t.rewrite.moving.Unlock()
	return t.cache.Drop(*victims)
}

// cleanSearch says when clean rows are looked for.
type cleanSearch struct {
	pause atomic.Int32 // how many more times they are not
	// creating says that the last Pull created more rows than it read buckets, so that
	// few of its rows will be written with buckets that it carries.
	creating atomic.Bool
}

// worth reports whether n clean rows are worth looking for. They are if many rows
// are clean. Where announced passes need nearly all rows, few are clean, but those may be
// just the right ones: nobody needs them, whereas the dirty rows that nobody needs were
// mostly pulled just now, and are about to be written without a read, with the buckets
// that their set carries. That is not so for rows that were just created. Where most are,
// dirty rows must leave all the time, and not only once no clean row is left.
func (s *cleanSearch) worth(st rowcache.Stats, n int) bool {
	return st.Idle-st.Dirty >= st.Idle/cleanShare || !s.creating.Load() && st.Loose*enoughShare >= int64(n)
}

// evict lets up to n rows leave the cache, those that the policy chooses, and
// returns their number. REQUIRES: rewrite is held.
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
