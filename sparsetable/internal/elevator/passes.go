package elevator

import (
	"slices"
	"sync"

	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/guard"
)

// MaxPasses bounds the list of announced passes that are yet to be pulled.
const MaxPasses = 256

// announcement is a pass that was announced and is yet to be pulled.
type announcement struct {
	pass  int64
	keys  int
	sum   uint64         // of the hashes
	carry *carry.Buckets // buckets that were read for it

	// These say how far reading the missing rows of this pass has come (direct.go).
	list        []uint64 // keys to be looked at; the caller's at first
	part, parts uint64   // list is looked at in that many parts; part is the next one
	again       []uint64 // keys that are to be looked at once more, after list
}

// announcing numbers the passes. The numbers go up for as long as the table is
// open, so that a pass is never taken for one of an earlier epoch. A pass that the
// cache's window took no note of gets no number, so that numbers tell how many
// passes come before, except that the window may count passes in groups.
type announcing struct {
	sync.Mutex       // held by Announce and Withdraw
	next       int64 // number of the next pass
}

// passes are the announced passes that are yet to be pulled.
type passes struct {
	sync.Mutex
	list []*announcement
}

// number is how many there are.
func (l *passes) number() int {
	l.Lock()
	defer l.Unlock()
	return len(l.list)
}

func (l *passes) add(a *announcement) {
	l.Lock()
	defer l.Unlock()
	l.list = append(l.list, a)
}

// takeAll takes all off the list.
func (l *passes) takeAll() []*announcement {
	l.Lock()
	defer l.Unlock()
	all := l.list
	l.list = nil
	return all
}

// take takes the pass with the keys of these hashes off the list, and returns its number, or
// -1 if there is none, with the buckets that were read for it. It also removes the passes that
// were announced before it, since they were not pulled in their turn, and returns theirs.
func (l *passes) take(hashes []uint64) (pass int64, c *carry.Buckets, gone []*carry.Buckets) {
	l.Lock()
	defer l.Unlock()
	if len(l.list) == 0 {
		return -1, nil, nil
	}
	sum := uint64(0)
	for _, h := range hashes {
		sum += h
	}
	at := slices.IndexFunc(l.list, func(a *announcement) bool { return a.keys == len(hashes) && a.sum == sum })
	if at < 0 {
		if len(l.list) == MaxPasses {
			gone = append(gone, l.list[0].takeCarry()) // it is not pulled
			l.list = slices.Delete(l.list, 0, 1)
		}
		return -1, nil, gone
	}
	pass, c = l.list[at].pass, l.list[at].takeCarry()
	for _, a := range l.list[:at] {
		gone = append(gone, a.takeCarry())
	}
	l.list = slices.Delete(l.list, 0, at+1)
	return pass, c, gone
}

// next returns the first of the next passes that has keys which were not looked at yet. No
// announcement may be taken off the list meanwhile.
func (l *passes) next(number int) *announcement {
	l.Lock()
	defer l.Unlock()
	for _, a := range l.list[:min(len(l.list), number)] {
		if len(a.list) == 0 {
			a.list, a.again = a.again, nil
		}
		if len(a.list) > 0 {
			return a
		}
	}
	return nil
}

// takeCarry returns the buckets that were read for a pass that is taken off the
// list, and makes sure that nothing more is read for it.
func (a *announcement) takeCarry() *carry.Buckets {
	c := a.carry
	a.carry, a.list, a.again = nil, nil, nil
	return c
}

// Announced is how many announced passes are yet to be pulled. It may be called by anybody.
func (e *Elevator) Announced() int { return e.passes.number() }

// Announce puts a pass on the list, if the cache's window takes note of it; its number is returned for
// messages. The keys stay as they are until the pass is taken off the list. It may be called
// by anybody.
func (e *Elevator) Announce(keys []uint64) (pass int64, err error) {
	e.announcing.Lock()
	defer e.announcing.Unlock()
	defer e.Wake() // also because the window may be waiting for room
	if e.passes.number() >= MaxPasses {
		return 0, nil // they are not pulled; the next Pull removes one
	}
	var mark func(hashes []uint64)
	lacks := 0
	if e.marks() {
		mark = func(hashes []uint64) { lacks += e.markBuckets(hashes) }
	}
	pass = max(e.announcing.next, e.Cache.Next())
	noted, err := e.Cache.Announce(pass, keys, mark)
	if !noted || err != nil {
		return pass, err
	}
	e.announcing.next = pass + 1
	if mark != nil {
		e.noteNeed(lacks)
	}
	sum := uint64(0)
	for _, k := range keys {
		sum += e.Hash.Of(k)
	}
	e.passes.add(&announcement{pass: pass, keys: len(keys), sum: sum, list: keys})
	return pass, nil
}

// Withdraw takes all passes off the list. It may be called by anybody who does not hold
// changing, which it takes: the keys are used only under that lock.
func (e *Elevator) Withdraw(changing guard.Lock) {
	e.announcing.Lock()
	defer e.announcing.Unlock()
	changing.Lock()
	defer changing.Release()
	e.Cache.Forget()
	e.dropAll()
}

func (e *Elevator) dropAll() {
	for _, a := range e.passes.takeAll() {
		e.Drop(a.takeCarry())
	}
}

// Take takes the pass with the keys of these hashes off the list, and those that were
// announced before it. It returns the number of the pass, or -1 if there is none, and the
// buckets that were read for it.
func (e *Elevator) Take(hashes []uint64) (pass int64, c *carry.Buckets) {
	pass, c, gone := e.passes.take(hashes)
	for _, g := range gone {
		e.Drop(g)
	}
	return pass, c
}

// Drop gives up copies of buckets. It may be called by anybody.
func (e *Elevator) Drop(c *carry.Buckets) {
	if c != nil {
		e.Carried.Drop(c)
		e.Wake() // it may have waited for room
	}
}
