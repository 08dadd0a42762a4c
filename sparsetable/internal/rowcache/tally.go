package rowcache

import (
	"sync"
	"sync/atomic"

	"aibox/internal/kernel"
)

// tally counts rows by their states, and the hits of Find. When several threads change rows at the
// same time, each counts in its own tally, which is then added to Cache.mu.
type tally struct {
	ranks        ranks
	dirty        int64 // rows with updates not on SSD
	marked2      int64 // rows with Mark2
	saved        int64 // rows with Saved
	unsaved      int64 // rows that are dirty and Old, so yet to be saved
	hitsInFlight int64
	hitsIdle     int64
	// touched receives what was loaded ahead of its use, so that the compiler does not drop these
	// loads. It is never read.
	touched uint32
	others  bool // other threads change rows at the same time
}

// swap changes a row's state from before to after, unless another thread has changed it meanwhile.
func (t *tally) swap(m *meta, before, after uint32) bool {
	if t.others {
		return atomic.CompareAndSwapUint32(&m.state, before, after)
	}
	m.state = after
	return true
}

// count updates the counters for a row whose state changes. An idle row keeps its rank.
func (c *Cache) count(t *tally, before, after uint32) {
	changed := before ^ after
	if was, is := idle(before), idle(after); was != is || changed&uint32(Dirty) != 0 {
		if was {
			t.ranks.remove(before)
		}
		if is {
			t.ranks.add(after)
		}
	}
	if c.unsaved(before) && !c.unsaved(after) {
		t.unsaved--
	}
	if changed&uint32(Dirty|Mark2|Saved) == 0 {
		return
	}
	t.dirty += gained(before, after, Dirty)
	t.marked2 += gained(before, after, Mark2)
	t.saved += gained(before, after, Saved)
}

// gained is 1 if only after has the flag, -1 if only before has it, and otherwise 0.
func gained(before, after uint32, flag Flags) (n int64) {
	if after&uint32(flag) != 0 {
		n++
	}
	if before&uint32(flag) != 0 {
		n--
	}
	return n
}

func (t *tally) add(u *tally) {
	t.ranks.idle.add(&u.ranks.idle)
	t.ranks.clean.add(&u.ranks.clean)
	t.dirty += u.dirty
	t.marked2 += u.marked2
	t.saved += u.saved
	t.unsaved += u.unsaved
	t.hitsInFlight += u.hitsInFlight
	t.hitsIdle += u.hitsIdle
	t.touched |= u.touched
}

func (k *rankCounts) add(l *rankCounts) {
	for i, n := range l.byUses {
		k.byUses[i] += n
	}
	for i, n := range l.byGroup {
		k.byGroup[i] += n
	}
	k.rows += l.rows
}

// tallies recycles the tallies of threads, 8 KiB each.
var tallies = sync.Pool{New: func() any { return new(tally) }}

// work is the work that several threads do for the holder of the mutex.
type work struct {
	do           func(c *Cache, w *work, t *tally, lo, hi int)
	keys, hashes []uint64
	refs         []uint32
	set, unset   uint32
}

// holdKeys is how many of n keys are found or released per acquisition of the mutex. With several
// threads that takes some 0.5 ms, during which others may wait: threads need a good part of 0.1 ms
// to start.
func holdKeys(n int) int {
	if threads := kernel.Threads(); threads > 1 {
		return min(n, 8*lockKeys*threads)
	}
	return min(n, lockKeys)
}

// share runs w over all of its references, on all threads if there are enough references. REQUIRES:
// the mutex is held.
func (c *Cache) share(w work) {
	n, threads := len(w.refs), kernel.Threads()
	c.mu.work = w
	if n <= lockKeys || threads == 1 {
		w.do(c, &c.mu.work, &c.mu.tally, 0, n)
	} else {
		// Each thread gets few ranges, because adding up a tally takes a microsecond per range.
		kernel.Parallel(n, max(lockKeys, n/(2*threads)), c.part)
	}
	c.mu.work = work{}
}

// doPart does a part of the work with its own tally.
func (c *Cache) doPart(lo, hi int) {
	t := tallies.Get().(*tally)
	t.others = true
	c.mu.work.do(c, &c.mu.work, t, lo, hi)
	c.sharing.Lock()
	c.mu.add(t)
	c.sharing.Unlock()
	*t = tally{}
	tallies.Put(t)
}
