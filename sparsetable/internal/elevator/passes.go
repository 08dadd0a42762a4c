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

	// The progress of reading the missing rows of this pass (direct.go):
	list        []uint64 // keys to be examined; at first the caller's slice
	part, parts uint64   // list is examined in parts parts; part is the next one
	again       []uint64 // keys to be examined again, after list
}

// announcing numbers the passes. The numbers grow as long as the table is open, so that a pass is
// never taken for one of an earlier epoch. A pass that the cache's window does not note gets no
// number. So numbers tell how many passes come before, except that the window may count passes in
// groups.
type announcing struct {
	sync.Mutex       // held by Announce and Withdraw
	next       int64 // number of the next pass
}

// passes are the announced passes that are yet to be pulled.
type passes struct {
	sync.Mutex
	list []*announcement
}

// number returns the length of the list.
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

// takeAll empties the list and returns its passes.
func (l *passes) takeAll() []*announcement {
	l.Lock()
	defer l.Unlock()
	all := l.list
	l.list = nil
	return all
}

// take removes the pass with the keys of these hashes from the list. It returns the pass's number,
// or -1 if there is none, and the buckets that were read for it. It also removes the passes that
// were announced before it, since they were not pulled in their turn, and returns their buckets in
// gone.
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
			gone = append(gone, l.list[0].takeCarry()) // its Pull does not come
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

// next returns the first of the next number passes that has keys to be examined. No announcement
// may be removed from the list meanwhile.
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

// takeCarry returns the buckets that were read for a pass that is removed from the list, and
// ensures that nothing more is read for it.
func (a *announcement) takeCarry() *carry.Buckets {
	c := a.carry
	a.carry, a.list, a.again = nil, nil, nil
	return c
}

// Announced is the number of announced passes yet to be pulled. Any goroutine may call it.
func (e *Elevator) Announced() int { return e.passes.number() }

// Announce adds a pass to the list if the cache's window notes it. It returns the pass's number,
// for messages. The keys must not change until the pass is removed from the list. Any goroutine may
// call it.
func (e *Elevator) Announce(keys []uint64) (pass int64, err error) {
	e.announcing.Lock()
	defer e.announcing.Unlock()
	defer e.Wake() // also because the window may be waiting for room
	if e.passes.number() >= MaxPasses {
		return 0, nil // these passes are not being pulled; the next Pull removes one
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
		e.recordNeed(lacks)
	}
	sum := uint64(0)
	for _, k := range keys {
		sum += e.Hash.Of(k)
	}
	e.passes.add(&announcement{pass: pass, keys: len(keys), sum: sum, list: keys})
	return pass, nil
}

// Withdraw removes all passes from the list. It acquires changing, because the keys are used only
// under that lock; so the caller must not hold changing.
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

// Take removes the pass with the keys of these hashes, and those that were announced before it,
// from the list. It returns the number of the pass, or -1 if there is none, and the buckets that
// were read for it.
func (e *Elevator) Take(hashes []uint64) (pass int64, c *carry.Buckets) {
	pass, c, gone := e.passes.take(hashes)
	for _, g := range gone {
		e.Drop(g)
	}
	return pass, c
}

// Drop frees copies of buckets. Any goroutine may call it.
func (e *Elevator) Drop(c *carry.Buckets) {
	if c != nil {
		e.Carried.Drop(c)
		e.Wake() // the prefetcher may wait for this room
	}
}
