package numbering

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Merger numbers the unique keys of mini-batches within their pass, with the help of workers
// that wait:
//
//	keys of the mini-batch   | chunk 0 | chunk 1 | chunk 2 | ...
//	claim, in parallel       the numbers of known keys, a slot for each new one, and how many are new
//	in order                 the first number of each chunk's new keys
//	assign, in parallel      the numbers of the new keys
//
// The keys of a mini-batch are distinct, so no search depends on a concurrently claimed key, and
// numbers do not depend on which goroutine does what. Only a new key's choice of free slot depends
// on that, which is not visible.
type Merger struct {
	table Table
	idle  chan<- *Merger // to workers that wait; it has no room, so that only those take from it

	keys      []uint64 // of the mini-batch
	rows      []int32
	chunks    []mergeChunk
	assigning bool // which of the two steps it is

	taken   atomic.Int64 // chunks, by whoever
	helpers sync.WaitGroup
}

// mergeChunk is a part of a mini-batch's keys.
type mergeChunk struct {
	fresh int32 // keys that are new
	first int32 // the number that the first of them gets
}

// chunkKeys is the number of keys in a chunk: about 50 microseconds of work, many times the cost of
// waking a worker.
const chunkKeys = 2048

// claimed is a slot whose key has no number yet. The number in it is larger than any.
const claimed = math.MaxUint32

// NewMerger returns a Merger that invites the receivers of idle, a channel without room, to help.
func NewMerger(idle chan<- *Merger) *Merger { return &Merger{idle: idle} }

// Begin begins a pass, whose keys it will append to keys.
func (m *Merger) Begin(keys []uint64) { m.table.Reset(keys) }

// Keys are the keys of the pass so far, by number.
func (m *Merger) Keys() []uint64 { return m.table.keys }

// Number puts the numbers of a mini-batch's keys, which differ from each other, into rows.
func (m *Merger) Number(keys []uint64, rows []int32) {
	m.keys, m.rows, m.assigning = keys, rows, false
	m.chunks = slices.Grow(m.chunks[:0], len(keys)/chunkKeys+1)[:(len(keys)+chunkKeys-1)/chunkKeys]
	t := &m.table
	if t.grow(len(t.keys) + len(keys)); len(t.slots) > math.MaxInt32 || !m.invite() {
		t.Number(keys, rows) // which takes less time than the two steps
		return
	}
	m.join()
	known := len(t.keys)
	for i := range m.chunks {
		c := &m.chunks[i]
		c.first = int32(known)
		known += int(c.fresh)
	}
	t.keys = append(t.keys, make([]uint64, known-len(t.keys))...)
	m.assigning = true
	m.invite()
	m.join()
}

// invite offers the work to waiting workers, and reports whether any was waiting.
func (m *Merger) invite() (some bool) {
	m.taken.Store(0)
	for range len(m.chunks) - 1 {
		m.helpers.Add(1)
		select {
		case m.idle <- m:
			some = true
		default:
			m.helpers.Done()
			return some
		}
	}
	return some
}

// join does the work that the helpers have not taken, and waits for them.
func (m *Merger) join() {
	m.work()
	m.helpers.Wait()
}

// Help is what an invited worker does.
func (m *Merger) Help() {
	defer m.helpers.Done()
	m.work()
}

// work does chunks until all are taken.
func (m *Merger) work() {
	for {
		i := int(m.taken.Add(1)) - 1
		if i >= len(m.chunks) {
			return
		}
		lo := i * chunkKeys
		hi := min(lo+chunkKeys, len(m.keys))
		if c := &m.chunks[i]; m.assigning {
			m.table.assign(m.keys[lo:hi], m.rows[lo:hi], int(c.first))
		} else {
			*c = m.table.claim(m.keys[lo:hi], m.rows[lo:hi])
		}
	}
}

// claim puts the number of each key into numbers, or ^at for a new key, where at is the slot that
// it gets. REQUIRES: there is room for the new keys.
func (t *Table) claim(keys []uint64, numbers []int32) (c mergeChunk) {
	slots, mask := t.slots, uint64(len(t.slots)-1)
	for len(keys) > 0 {
		n := min(len(keys), lookahead)
		t.touch(keys[:n])
		for i, key := range keys[:n] {
			tag := tagOf(key, mask)
			for at := key & mask; ; at = (at + 1) & mask {
				slot := atomic.LoadUint32(&slots[at])
				if slot == 0 && atomic.CompareAndSwapUint32(&slots[at], 0, claimed) {
					numbers[i] = ^int32(at)
					c.fresh++
					break
				}
				if number := slot&uint32(mask) - 1; slot&^uint32(mask) == tag && uint64(number) < uint64(len(t.keys)) && t.keys[number] == key {
					numbers[i] = int32(number)
					break
				}
			}
		}
		keys, numbers = keys[n:], numbers[n:]
	}
	return c
}

// assign gives the new keys the numbers from next on.
func (t *Table) assign(keys []uint64, numbers []int32, next int) {
	mask := uint64(len(t.slots) - 1)
	for i, number := range numbers {
		if number < 0 {
			t.keys[next], numbers[i] = keys[i], int32(next)
			next++
			t.slots[^number] = tagOf(keys[i], mask) | uint32(next)
		}
	}
}
