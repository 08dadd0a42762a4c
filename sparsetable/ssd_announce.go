package sparsetable

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/carry"
)

// maxAnnounced bounds the list of announced passes that are yet to be pulled.
const maxAnnounced = 256

// announcement is a pass that was announced and is yet to be pulled.
type announcement struct {
	pass  int64
	keys  int
	sum   uint64         // of the hashes
	carry *carry.Buckets // buckets that were read for it

	// These say how far reading the missing rows of this pass has come (ssd_direct.go).
	list        []uint64 // keys to be looked at; the caller's at first
	part, parts uint64   // list is looked at in that many parts; part is the next one
	again       []uint64 // keys that are to be looked at once more, after list
}

// lookahead is what the table does for announced passes.
type lookahead struct {
	announcing announcing
	announced  announcements
	elevator   elevator      // under changing
	ahead      chan struct{} // wakes the prefetcher
	// waitingPulls is how many Pulls wait for changing.
	waitingPulls atomic.Int32
}

// announcing numbers the passes. The numbers go up for as long as the table is
// open, so that a pass is never taken for one of an earlier epoch. A pass that the
// cache's window took no note of gets no number, so that numbers tell how many
// passes come before, except that the window may count passes in groups.
type announcing struct {
	sync.Mutex       // held by Announce and ForgetAnnounced
	next       int64 // number of the next pass
}

// announcements are the announced passes that are yet to be pulled.
type announcements struct {
	sync.Mutex
	passes []*announcement
}

// number is how many there are.
func (l *announcements) number() int {
	l.Lock()
	defer l.Unlock()
	return len(l.passes)
}

func (l *announcements) add(a *announcement) {
	l.Lock()
	defer l.Unlock()
	l.passes = append(l.passes, a)
}

// takeAll takes all off the list.
func (l *announcements) takeAll() []*announcement {
	l.Lock()
	defer l.Unlock()
	all := l.passes
	l.passes = nil
	return all
}

// take takes the pass with the keys of these hashes off the list, and returns its number, or
// -1 if there is none, with the buckets that were read for it. It also removes the passes that
// were announced before it, since they were not pulled in their turn, and returns theirs.
// REQUIRES: changing is held.
func (l *announcements) take(hashes []uint64) (pass int64, c *carry.Buckets, gone []*carry.Buckets) {
	l.Lock()
	defer l.Unlock()
	if len(l.passes) == 0 {
		return -1, nil, nil
	}
	sum := sumOf(hashes)
	at := slices.IndexFunc(l.passes, func(a *announcement) bool { return a.keys == len(hashes) && a.sum == sum })
	if at < 0 {
		if len(l.passes) == maxAnnounced {
			gone = append(gone, l.passes[0].takeCarry()) // it is not pulled
			l.passes = slices.Delete(l.passes, 0, 1)
		}
		return -1, nil, gone
	}
	pass, c = l.passes[at].pass, l.passes[at].takeCarry()
	for _, a := range l.passes[:at] {
		gone = append(gone, a.takeCarry())
	}
	l.passes = slices.Delete(l.passes, 0, at+1)
	return pass, c, gone
}

// next returns the first of the next passes that has keys which were not looked at yet.
// REQUIRES: changing is held, so that no announcement is taken off the list.
func (l *announcements) next(passes int) *announcement {
	l.Lock()
	defer l.Unlock()
	for _, a := range l.passes[:min(len(l.passes), passes)] {
		if len(a.list) == 0 {
			a.list, a.again = a.again, nil
		}
		if len(a.list) > 0 {
			return a
		}
	}
	return nil
}

// Announce implements Table.
func (t *ssd) Announce(keys []uint64) {
	if t.opts.SSD.CachePolicy != policyLookahead || len(keys) == 0 || t.door.Enter() != nil {
		return
	}
	defer t.door.Leave()
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.announced.number() >= maxAnnounced {
		return // they are not pulled; the next Pull removes one
	}
	var mark func(hashes []uint64)
	lacks := 0
	if t.marks() {
		mark = func(hashes []uint64) { lacks += t.markBuckets(hashes) }
	}
	pass := max(t.announcing.next, t.cache.Next())
	noted, err := t.cache.Announce(pass, keys, mark)
	if err != nil {
		t.opts.Logger.Warn("sparsetable: a pass could not be announced, so its rows are not read ahead", slog.Int64("pass", pass), slog.Any("error", err))
	}
	if !noted || err != nil {
		t.wakePrefetch() // the window may be waiting for room
		return
	}
	t.announcing.next = pass + 1
	if mark != nil {
		t.elevator.noteNeed(lacks)
	}
	t.announced.add(&announcement{pass: pass, keys: len(keys), sum: t.sumOfKeys(keys), list: keys})
	t.wakePrefetch()
}

// Lookahead implements Table.
func (t *ssd) Lookahead(keys int) (passes int) {
	if t.opts.SSD.CachePolicy != policyLookahead || t.door.Enter() != nil {
		return 0
	}
	defer t.door.Leave()
	passes, err := t.cache.Lookahead(keys)
	if err != nil {
		t.opts.Logger.Warn("sparsetable: it could not be determined how many passes to look ahead", slog.Int("keys", keys), slog.Any("error", err))
	}
	return min(passes, maxAnnounced-1) // the list takes the pass to be pulled next as well
}

// ForgetAnnounced implements Table.
func (t *ssd) ForgetAnnounced() {
	if t.opts.SSD.CachePolicy != policyLookahead || t.door.Enter() != nil {
		return
	}
	defer t.door.Leave()
	t.announcing.Lock()
	defer t.announcing.Unlock()
	t.changing.Lock() // the prefetcher uses the keys only while it holds changing
	t.cache.Forget()
	t.dropAnnounced()
	t.changing.Release()
	t.wakePrefetch() // it may have paused for the announced passes
	t.wakeIfFull()   // rows may leave now
}

// dropAnnounced gives up all announced passes. REQUIRES: changing is held, or
// nobody else is at work on the table.
func (t *ssd) dropAnnounced() {
	for _, a := range t.announced.takeAll() {
		t.dropCarry(a.takeCarry())
	}
}

// takeCarry returns the buckets that were read for a pass that is taken off the
// list, and makes sure that nothing more is read for it.
func (a *announcement) takeCarry() *carry.Buckets {
	c := a.carry
	a.carry, a.list, a.again = nil, nil, nil
	return c
}

// takeAnnounced takes the announced pass with the keys of these hashes off the list, as
// announcements.take does. REQUIRES: changing is held.
func (t *ssd) takeAnnounced(hashes []uint64) (pass int64, c *carry.Buckets) {
	pass, c, gone := t.announced.take(hashes)
	for _, g := range gone {
		t.dropCarry(g)
	}
	return pass, c
}

func sumOf(hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		sum += h
	}
	return sum
}
