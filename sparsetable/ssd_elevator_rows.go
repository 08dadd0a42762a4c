package sparsetable

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// alight waits for some reads of the elevator, or for all of them if all is true,
// and takes the rows and buckets that are of use out of them.
func (t *ssd) alight(ctx context.Context, all bool) {
	e := &t.elevator
	buckets := 0
	for first := true; e.queue.Pending() > 0 && (all || first); first = false {
		e.done = e.queue.Wait(e.done[:0], min(e.queue.Pending(), rideBatch/8))
		t.takeAlong(ctx, e.done)
		t.keepLeaving()
		e.queue.Finish(e.done)
		for _, r := range e.done {
			delete(e.onWay, r.Slot)
			e.idle = append(e.idle, r.User.(*rideRequest))
		}
		buckets += len(e.done)
	}
	reads, bytes := e.queue.DeviceReads()
	t.sets.Lock()
	defer t.sets.Unlock()
	st := &t.sets.stats
	st.BucketReads += int64(buckets)
	st.DeviceReads += int64(reads - e.reads)
	st.ReadBytes += int64(bytes - e.bytes)
	st.Prefetched += e.taken
	e.reads, e.bytes, e.taken = reads, bytes, 0
}

// drainElevator waits for all reads of the elevator and drops what they bring.
func (t *ssd) drainElevator() {
	e := &t.elevator
	for e.queue.Pending() > 0 {
		e.done = e.queue.Wait(e.done[:0], e.queue.Pending())
		e.queue.Finish(e.done)
	}
}

// takeAlong puts the rows that announced passes need from finished reads into the
// cache. The reads are a Pull's, after it has taken its own rows, or the
// elevator's.
func (t *ssd) takeAlong(ctx context.Context, done []*bucketfile.Request) {
	e, p := &t.elevator, &t.pull
	p.clearBatch()
	e.from = e.from[:0]
	for _, r := range done {
		if r.Err != nil {
			continue // a Pull that needs its rows reads it again and returns the error
		}
		e.hashes = e.hashes[:0]
		for i := range r.Bucket.Len() {
			e.hashes = append(e.hashes, t.hash.Of(r.Bucket.Key(i)))
		}
		e.wanted = slices.Grow(e.wanted[:0], len(e.hashes))[:len(e.hashes)]
		aimed := rideOf(r).aimed()
		if t.cache.Missed(e.hashes, e.wanted) == 0 && len(aimed) == 0 {
			continue
		}
		for i, wanted := range e.wanted {
			if wanted || slices.Contains(aimed, r.Bucket.Key(i)) {
				p.keys = append(p.keys, r.Bucket.Key(i))
				p.keyHashes = append(p.keyHashes, e.hashes[i])
				p.rows = append(p.rows, r.Bucket.Row(i))
				e.from = append(e.from, r)
			}
		}
	}
	if len(p.keys) == 0 {
		return
	}
	p.prefetching = true
	defer func() { p.prefetching = false }()
	t.onlyCurrent()
	e.refs = slices.Grow(e.refs[:0], len(p.keys))[:len(p.keys)]
	clear(e.refs)
	// Where there is no room, the Pulls of the passes read the remaining rows.
	_ = t.insert(ctx, e.refs, func(i int, row []float32) { copy(row, p.rows[i]) }, true)
	e.passes = e.passes[:0]
	for i := range p.keys {
		e.passes = append(e.passes, rideOf(e.from[i]).pass())
	}
	t.cache.Expect(e.refs, e.passes)
	t.cache.Release(e.refs, false)
	for _, ref := range e.refs {
		if ref != 0 {
			e.taken++
		} else {
			e.full.Store(true)
		}
	}
}

// rideOf returns the elevator's stop that a request is for, or nil for a request of
// a Pull.
func rideOf(r *bucketfile.Request) *rideRequest {
	ride, _ := r.User.(*rideRequest)
	return ride
}

// onlyCurrent removes from the batch the rows that are in the cache or outside of
// buckets, and those whose bucket is no longer the one of its slot. No row comes
// into the cache meanwhile, so the rows that remain are the latest versions, see
// ssd.
func (t *ssd) onlyCurrent() {
	e, p := &t.elevator, &t.pull
	e.refs = slices.Grow(e.refs[:0], len(p.keys))[:len(p.keys)]
	t.cache.Locate(p.keys, p.keyHashes, e.refs)
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	n := 0
	last, current := (*bucketfile.Request)(nil), false // rows of a bucket follow each other
	for i, ref := range e.refs {
		r := e.from[i]
		if ref != 0 || t.outside.HasHash(p.keyHashes[i]) {
			continue // the bucket may have an older version
		}
		if r != last {
			last, current = r, t.liesAt(r.Slot, r.Location)
		}
		if !current {
			if ride := rideOf(r); slices.Contains(ride.aimed(), p.keys[i]) {
				ride.aim.again = append(ride.aim.again, p.keys[i])
			}
			continue
		}
		p.keys[n], p.keyHashes[n], p.rows[n], e.from[n] = p.keys[i], p.keyHashes[i], p.rows[i], r
		p.uses = append(p.uses, t.usesOf(p.rows[n]))
		p.at = append(p.at, uint32(n))
		n++
	}
	p.keys, p.keyHashes, p.rows = p.keys[:n], p.keyHashes[:n], p.rows[:n]
}

// keepLeaving copies the buckets of slots that have rows to be written, and the
// buckets that were read for an announced pass, which will write to them.
func (t *ssd) keepLeaving() {
	e := &t.elevator
	if e.carry == nil {
		e.carry = t.carried.New()
	}
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	for _, r := range e.done {
		if ride := r.User.(*rideRequest); r.Err == nil && len(ride.aimed()) > 0 && t.carried.Keep(ride.aim.carry, r) {
			continue
		}
		if r.Err == nil && t.hasLeaving(r.Slot) && !t.carried.Keep(e.carry, r) {
			t.index.Mark(r.Slot) // it is read again in the next round
		}
	}
}

// hasLeaving reports whether rows of a slot are to be written. REQUIRES: indexMu is
// held.
func (t *ssd) hasLeaving(slot uint32) bool {
	return slot < t.index.Slots() && t.leavingRows(slot) > 0
}

// handRide gives the buckets that were kept to the background writer, if they fill
// more than that many chunks.
func (t *ssd) handRide(chunks int) {
	if e := &t.elevator; e.carry != nil && e.carry.Chunks() > chunks {
		t.handOver(e.carry)
		e.carry = nil
	}
}
