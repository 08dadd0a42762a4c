package sparsetable

import (
	"log/slog"
	"slices"
	"sync"

	"aibox/sparsetable/internal/slots"
)

// maxAnnounced bounds the list of announced passes that were not pulled.
const maxAnnounced = 256

// announcement is a pass that will be pulled.
type announcement struct {
	pass  int64
	keys  int
	sum   uint64 // of the hashes
	carry *carry // buckets that were read for it

	// Of reading what it alone lacks.
	list        []uint64 // keys to be looked at; the caller's at first
	part, parts uint64   // of them, the next one of so many
	again       []uint64 // keys that are to be looked at after those
}

// announcing numbers the passes. The numbers go up for as long as the table is
// open, so that no reading of the data can be taken for an earlier one; a pass
// that the window took no note of gets none, so that they say how many passes
// come before, or nearly so: the window may count in groups.
type announcing struct {
	sync.Mutex       // held by Announce and ForgetAnnounced
	next       int64 // number of the next pass
}

// Announce implements Table.
func (t *ssd) Announce(keys []uint64) {
	if t.opts.SSD.CachePolicy != policyLookahead || len(keys) == 0 || t.enter() != nil {
		return
	}
	defer t.leave()
	t.announcing.Lock()
	defer t.announcing.Unlock()
	if t.announcedPasses() >= maxAnnounced {
		return // nobody pulls them; the next Pull gives one up
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
		t.wakePrefetch() // it may be that the window waits for room
		return
	}
	t.announcing.next = pass + 1
	if mark != nil {
		t.elevator.noteNeed(lacks)
	}
	a := &announcement{pass: pass, keys: len(keys), sum: sumOfKeys(keys), list: keys}
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
	if t.opts.SSD.CachePolicy != policyLookahead || t.enter() != nil {
		return 0
	}
	defer t.leave()
	passes, err := t.cache.Lookahead(keys)
	if err != nil {
		t.log.Warn("sparsetable: the number of passes to look ahead could not be found", slog.Int("keys", keys), slog.Any("error", err))
	}
	return min(passes, maxAnnounced-1) // the list takes the pass to be pulled next as well
}

// ForgetAnnounced implements Table.
func (t *ssd) ForgetAnnounced() {
	if t.opts.SSD.CachePolicy != policyLookahead || t.enter() != nil {
		return
	}
	defer t.leave()
	t.announcing.Lock()
	defer t.announcing.Unlock()
	t.changing <- struct{}{} // the prefetcher uses keys under it
	t.cache.Forget()
	t.dropAnnounced()
	<-t.changing
	t.wakePrefetch() // it may have given way
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

// takeCarry is for those who take a pass off the list: what is read for it from
// then on is carried by others.
func (a *announcement) takeCarry() *carry {
	c := a.carry
	a.carry, a.list, a.again = nil, nil, nil
	return c
}

// takeAnnounced is the announced pass that pulls these keys, -1 if there is
// none, with the buckets that were read for it. Those announced before it have
// been given up. REQUIRES: changing is held.
func (t *ssd) takeAnnounced(hashes []uint64) (pass int64, c *carry) {
	pass = -1
	var gone []*carry
	t.mu.Lock()
	if len(t.mu.announced) > 0 {
		sum := sumOf(hashes)
		at := slices.IndexFunc(t.mu.announced, func(a *announcement) bool { return a.keys == len(hashes) && a.sum == sum })
		if at < 0 && len(t.mu.announced) == maxAnnounced {
			gone = append(gone, t.mu.announced[0].takeCarry()) // nobody pulls it
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

// sumOfKeys is sumOf for the hashes of keys.
func sumOfKeys(keys []uint64) (sum uint64) {
	for _, k := range keys {
		sum += slots.Hash(k)
	}
	return sum
}
