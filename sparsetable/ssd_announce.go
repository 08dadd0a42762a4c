package sparsetable

import (
	"log/slog"
	"slices"
	"sync"

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

// announcing numbers the passes. The numbers go up for as long as the table is
// open, so that a pass is never taken for one of an earlier epoch. A pass that the
// cache's window took no note of gets no number, so that numbers tell how many
// passes come before, except that the window may count passes in groups.
type announcing struct {
	sync.Mutex       // held by Announce and ForgetAnnounced
	next       int64 // number of the next pass
}

// Announce implements Table.
func (t *ssd) Announce(keys []uint64) {
	if t.opts.SSD.CachePolicy != policyLookahead || len(keys) == 0 || t.door.Enter() != nil {
		return
	}
	defer t.door.Leave()
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.announcedPasses() >= maxAnnounced {
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
		t.log.Warn("sparsetable: a pass could not be announced, so its rows are not read ahead", slog.Int64("pass", pass), slog.Any("error", err))
	}
	if !noted || err != nil {
		t.wakePrefetch() // the window may be waiting for room
		return
	}
	t.announcing.next = pass + 1
	if mark != nil {
		t.elevator.noteNeed(lacks)
	}
	a := &announcement{pass: pass, keys: len(keys), sum: t.sumOfKeys(keys), list: keys}
	t.mu.Lock()
	t.mu.announced = append(t.mu.announced, a)
	t.mu.Unlock()
	t.wakePrefetch()
}

func (t *ssd) announcedPasses() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.announced)
}

// Lookahead implements Table.
func (t *ssd) Lookahead(keys int) (passes int) {
	if t.opts.SSD.CachePolicy != policyLookahead || t.door.Enter() != nil {
		return 0
	}
	defer t.door.Leave()
	passes, err := t.cache.Lookahead(keys)
	if err != nil {
		t.log.Warn("sparsetable: it could not be determined how many passes to look ahead", slog.Int("keys", keys), slog.Any("error", err))
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
	t.changing <- struct{}{} // the prefetcher uses the keys only while it holds changing
	t.cache.Forget()
	t.dropAnnounced()
	t.changing.Release()
	t.wakePrefetch() // it may have paused for the announced passes
	t.wakeIfFull()   // rows may leave now
}

// dropAnnounced gives up all announced passes. REQUIRES: changing is held, or
// nobody else is at work on the table.
func (t *ssd) dropAnnounced() {
	t.mu.Lock()
	all := t.mu.announced
	t.mu.announced = nil
	t.mu.Unlock()
	for _, a := range all {
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

// takeAnnounced takes the announced pass with these keys off the list, and returns
// its number, or -1 if there is none, with the buckets that were read for it. It
// also removes the passes that were announced before it, since they were not pulled
// in their turn. REQUIRES: changing is held.
func (t *ssd) takeAnnounced(hashes []uint64) (pass int64, c *carry.Buckets) {
	pass = -1
	var gone []*carry.Buckets
	t.mu.Lock()
	if len(t.mu.announced) > 0 {
		sum := sumOf(hashes)
		at := slices.IndexFunc(t.mu.announced, func(a *announcement) bool { return a.keys == len(hashes) && a.sum == sum })
		if at < 0 && len(t.mu.announced) == maxAnnounced {
			gone = append(gone, t.mu.announced[0].takeCarry()) // it is not pulled
			t.mu.announced = slices.Delete(t.mu.announced, 0, 1)
		}
		if at >= 0 {
			pass, c = t.mu.announced[at].pass, t.mu.announced[at].takeCarry()
			for _, a := range t.mu.announced[:at] {
				gone = append(gone, a.takeCarry())
			}
			t.mu.announced = slices.Delete(t.mu.announced, 0, at+1)
		}
	}
	t.mu.Unlock()
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

// sumOfKeys is the sum of the hashes of keys.
func (t *ssd) sumOfKeys(keys []uint64) (sum uint64) {
	for _, k := range keys {
		sum += t.hash.Of(k)
	}
	return sum
}
