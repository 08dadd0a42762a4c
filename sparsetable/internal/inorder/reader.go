// Package inorder reads buckets of a table ahead, many at a time, and delivers them in the order of
// a list of slots, regardless of the order in which they arrive. When buckets are rewritten in that
// order, and the old buckets lie in their files in the same order, the old files become free one
// after the other.
package inorder

import (
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// atOnce is how many buckets are submitted at a time: with one system call, and in one read if they
// lie close together.
const atOnce = 64

// Reader reads the buckets of slots. One goroutine at a time uses it.
type Reader struct {
	queue   *bucketfile.Queue
	index   *slots.Index
	indexMu *sync.RWMutex
	unit    int64
	limit   int64 // maximum bytes of buckets being read or not yet given back
	bytes   int64 // of buckets requested and not yet given back

	ring       []bucket // used from head to tail, modulo its length
	head, tail int
	submit     []*bucketfile.Request
	ended      []*bucketfile.Request
}

// bucket is the bucket of an upcoming slot.
type bucket struct {
	request bucketfile.Request // Location 0: the slot has no bucket
	arrived bool
}

// New makes a Reader for buckets of whole units of unit bytes. It has up to buckets buckets at a
// time, atOnce or more, of up to bytes bytes. The queue must not be used otherwise while reads are
// in flight.
func New(queue *bucketfile.Queue, index *slots.Index, indexMu *sync.RWMutex, unit, buckets int, bytes int64) *Reader {
	return &Reader{queue: queue, index: index, indexMu: indexMu, unit: int64(unit), limit: bytes, ring: make([]bucket, buckets)}
}

// Fill starts reads until there are enough in flight. next returns the upcoming slots, and false at
// the end.
func (r *Reader) Fill(next func() (slot uint32, ok bool)) {
	for more := true; more && len(r.ring)-(r.tail-r.head) >= atOnce && max(r.bytes, r.queue.HeldBytes()) < r.limit; {
		r.submit = r.submit[:0]
		r.indexMu.RLock()
		for n := 0; n < atOnce && r.bytes < r.limit; n++ {
			var slot uint32
			if slot, more = next(); !more {
				break
			}
			b := &r.ring[r.tail%len(r.ring)]
			r.tail++
			loc := bucketfile.Location(r.index.Location(slot))
			*b = bucket{request: bucketfile.Request{Slot: slot, Location: loc, User: b}, arrived: loc == 0}
			if loc != 0 {
				r.submit = append(r.submit, &b.request)
				r.bytes += int64(loc.Units()) * r.unit
			}
		}
		r.queue.Submit(r.submit) // under indexMu, so that no location is released before
		r.indexMu.RUnlock()
	}
}

// Wait waits for the buckets of the next least slots, or of all slots if fewer are left. It returns
// how many consecutive slots, up to most, have their buckets now, or 0 at the end.
func (r *Reader) Wait(least, most int) (n int) {
	for {
		for n < most && r.head+n < r.tail && r.ring[(r.head+n)%len(r.ring)].arrived {
			n++
		}
		if n >= least || r.head+n == r.tail {
			return n
		}
		r.ended = r.queue.Wait(r.ended[:0], 1)
		for _, e := range r.ended {
			e.User.(*bucket).arrived = true
		}
	}
}

// Current returns the bucket of the slot i places after the next one, or nil if it has none. ok is
// false if what was read is no longer the slot's bucket. REQUIRES: Wait returned more than i, and
// nobody changes the index.
func (r *Reader) Current(i int) (slot uint32, old *bucketfile.Bucket, ok bool, err error) {
	q := &r.ring[(r.head+i)%len(r.ring)].request
	switch {
	case bucketfile.Location(r.index.Location(q.Slot)) != q.Location:
		return q.Slot, nil, false, nil
	case q.Location == 0:
		return q.Slot, nil, true, nil
	}
	return q.Slot, &q.Bucket, true, q.Err
}

// Advance frees the buffers of the next n slots and moves past them.
func (r *Reader) Advance(n int) {
	r.ended = r.ended[:0]
	for range n {
		if q := &r.ring[r.head%len(r.ring)].request; q.Location != 0 {
			r.ended = append(r.ended, q)
			r.bytes -= int64(q.Location.Units()) * r.unit
		}
		r.head++
	}
	r.queue.Finish(r.ended)
}

// Drain waits for the reads in flight and drops their buckets.
func (r *Reader) Drain() {
	for n := r.Wait(1, len(r.ring)); n > 0; n = r.Wait(1, len(r.ring)) {
		r.Advance(n)
	}
}
