package sparsetable

import (
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/spool"
)

// aheadReader reads the old buckets of the slots that a large import will merge
// next, many at a time, while the import merges the slots before. It delivers the
// buckets in the order of the slots, whatever the order in which they arrive. The
// buckets of an earlier import lie in their files in that order, so the files
// become free one after the other.
//
// Its buffers come from a pool of its own, in memory that the import borrowed.
type aheadReader struct {
	t     *ssd
	pool  *blockio.Pool
	queue *bucketfile.Queue
	limit int64 // most bytes of buckets that are being read or wait to be merged
	bytes int64 // of buckets asked for and not given back

	ring        []aheadBucket // from head to tail, each modulo its length
	head, tail  int
	submit      []*bucketfile.Request
	ended       []*bucketfile.Request
	reads, read uint64 // the queue's counters when they were last added to the statistics
}

// aheadBucket is the bucket of a slot that the merging has yet to come to.
type aheadBucket struct {
	request bucketfile.Request // Location 0: the slot has no bucket
	arrived bool
}

const (
	// aheadBuckets is how many buckets are read ahead: as many as a device works on
	// at once, and two batches, of which one is being merged.
	aheadBuckets = 2*rewriteBatch + blockio.DefaultQueueDepth
	// aheadSubmit is how many buckets are submitted at a time: with one system
	// call, and those that lie close together in one read.
	aheadSubmit = 64
	// One part in aheadShare of the memory for merging is for these buffers, up to
	// maxAheadBytes.
	aheadShare    = 16
	maxAheadBytes = 4 << 20
	// A gap of up to aheadGapBytes between two buckets is read, too, where that
	// saves a read.
	aheadGapBytes = 4 << 10
	maxAheadRead  = 64 << 10
)

// aheadBytes is how much of the borrowed memory an aheadReader takes.
func aheadBytes(borrowed int64) int64 {
	return max(min(borrowed/aheadShare, maxAheadBytes)/4096, 1) * 4096
}

// newAheadReader makes an aheadReader that takes that much memory.
func (t *ssd) newAheadReader(bytes int64) *aheadReader {
	r := &aheadReader{t: t, pool: blockio.NewPool(t.pool.Unit(), bytes), ring: make([]aheadBucket, aheadBuckets)}
	r.queue = t.files.NewQueueIn(r.pool)
	// Buffers are rounded up, by a third at most, and free ones may be of other
	// sizes than those that are wanted.
	r.limit = bytes / 2
	r.queue.MergeWithin(aheadGapBytes, min(r.limit/8, maxAheadRead))
	return r
}

// fill starts reads until there are enough on their way. next gives the slots to
// come, and false at their end.
func (r *aheadReader) fill(next func() (slot uint32, ok bool)) {
	t, unit := r.t, int64(r.t.files.Unit())
	for more := true; more && len(r.ring)-(r.tail-r.head) >= aheadSubmit && max(r.bytes, r.queue.HeldBytes()) < r.limit; {
		r.submit = r.submit[:0]
		t.indexMu.RLock()
		for n := 0; n < aheadSubmit && r.bytes < r.limit; n++ {
			var slot uint32
			if slot, more = next(); !more {
				break
			}
			b := &r.ring[r.tail%len(r.ring)]
			r.tail++
			loc := bucketfile.Location(t.index.Location(slot))
			*b = aheadBucket{request: bucketfile.Request{Slot: slot, Location: loc, User: b}, arrived: loc == 0}
			if loc != 0 {
				r.submit = append(r.submit, &b.request)
				r.bytes += int64(loc.Units()) * unit
			}
		}
		r.queue.Submit(r.submit) // under indexMu, see ssd
		t.indexMu.RUnlock()
	}
}

// wait waits for the bucket of the next slot and returns how many consecutive
// slots, from that one on, have their buckets now, but not more than most. It
// returns 0 at the end.
func (r *aheadReader) wait(most int) (n int) {
	for r.head < r.tail && !r.ring[r.head%len(r.ring)].arrived {
		r.ended = r.queue.Wait(r.ended[:0], 1)
		for _, e := range r.ended {
			e.User.(*aheadBucket).arrived = true
		}
	}
	for n < most && r.head+n < r.tail && r.ring[(r.head+n)%len(r.ring)].arrived {
		n++
	}
	return n
}

// current returns the bucket of the i-th slot from the head on, nil if it has
// none. ok is false if what was read is not the slot's bucket any more. REQUIRES:
// rewrite is held.
func (r *aheadReader) current(i int) (slot uint32, old *bucketfile.Bucket, ok bool, err error) {
	q := &r.ring[(r.head+i)%len(r.ring)].request
	switch {
	case bucketfile.Location(r.t.index.Location(q.Slot)) != q.Location:
		return q.Slot, nil, false, nil
	case q.Location == 0:
		return q.Slot, nil, true, nil
	}
	return q.Slot, &q.Bucket, true, q.Err
}

// advance gives back the buffers of the next n slots.
func (r *aheadReader) advance(n int) {
	r.ended = r.ended[:0]
	for range n {
		if q := &r.ring[r.head%len(r.ring)].request; q.Location != 0 {
			r.ended = append(r.ended, q)
			r.bytes -= int64(q.Location.Units()) * int64(r.t.files.Unit())
		}
		r.head++
	}
	r.queue.Finish(r.ended)
}

// count adds what was read to the statistics. REQUIRES: rewrite is held.
func (r *aheadReader) count() {
	reads, read := r.queue.DeviceReads()
	c := &r.t.rewrite.counts
	c.reads += int64(reads - r.reads)
	c.readBytes += int64(read - r.read)
	r.reads, r.read = reads, read
}

// drain waits for the reads in flight and drops their buckets.
func (r *aheadReader) drain() {
	for n := r.wait(len(r.ring)); n > 0; n = r.wait(len(r.ring)) {
		r.advance(n)
	}
}

// close gives the memory back. REQUIRES: no read is in flight.
func (r *aheadReader) close() {
	r.t.rewrite.Lock()
	r.count()
	r.t.rewrite.Unlock()
	r.pool.Close()
}

// mergeArea writes the buckets of all slots of an area, in their order, a batch
// at a time, while the buckets of the next ones are read.
func (l *bulkLoad) mergeArea(a *spool.Area) error {
	t, m, r := l.t, &l.merge, l.ahead
	m.area = a
	defer r.drain()
	next := a.Slots(t.index.Slots())
	for {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		r.fill(next)
		n := r.wait(int(min(rewriteBatch, t.evictStep())))
		if n == 0 {
			return nil
		}
		if err := l.mergeNext(n); err != nil {
			return err
		}
		if err := t.keepSpace(l.ctx); err != nil {
			return err
		}
	}
}

// mergeNext merges the next n slots. Buckets that were moved or written anew
// after they were read are read once more.
func (l *bulkLoad) mergeNext(n int) error {
	t, r := l.t, l.ahead
	defer r.advance(n)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	r.count()
	cached := t.cache.Stats().Rows > 0
	l.merge.again = l.merge.again[:0]
	for i := range n {
		slot, old, ok, err := r.current(i)
		if !ok {
			l.merge.again = append(l.merge.again, slot)
			continue
		}
		if err == nil {
			err = l.mergeSlot(slot, old, cached)
		}
		if err != nil {
			return err
		}
	}
	return t.eachBucket(l.merge.again, func(slot uint32, old *bucketfile.Bucket) error {
		return l.mergeSlot(slot, old, cached)
	})
}
