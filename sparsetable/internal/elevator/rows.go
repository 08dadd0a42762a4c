package elevator

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// collect waits for some reads of the elevator, or for all of them if all is true, and takes the
// useful rows and buckets out of them.
func (e *Elevator) collect(ctx context.Context, all bool) {
	buckets := 0
	for first := true; e.queue.Pending() > 0 && (all || first); first = false {
		e.done = e.queue.Wait(e.done[:0], min(e.queue.Pending(), submitBatch/8))
		e.InsertAnnounced(ctx, e.done)
		e.keepLeaving()
		e.queue.Finish(e.done)
		for _, r := range e.done {
			delete(e.inFlight, r.Slot)
			e.idle = append(e.idle, r.User.(*stopRequest))
		}
		buckets += len(e.done)
	}
	reads, bytes := e.queue.DeviceReads()
	e.counts.buckets.Add(int64(buckets))
	e.counts.reads.Store(int64(reads))
	e.counts.bytes.Store(int64(bytes))
}

// InsertAnnounced puts the rows that announced passes need from finished reads into the cache. The reads
// are those of a Pull, after it has taken its own rows, or the elevator's.
func (e *Elevator) InsertAnnounced(ctx context.Context, done []*bucketfile.Request) {
	p := e.Incoming
	p.Clear()
	e.from = e.from[:0]
	clear(e.seen)
	for _, r := range done {
		if r.Err != nil {
			continue // a Pull that needs its rows reads it again and returns the error
		}
		if _, again := e.seen[r.Location]; again {
			continue // slots were split or merged while a Pull looked for its keys
		}
		e.seen[r.Location] = struct{}{}
		e.hashes = e.hashes[:0]
		for i := range r.Bucket.Len() {
			e.hashes = append(e.hashes, e.Hash.Of(r.Bucket.Key(i)))
		}
		e.wanted = slices.Grow(e.wanted[:0], len(e.hashes))[:len(e.hashes)]
		keys := stopRequestOf(r).targetKeys()
		if e.Cache.Missed(e.hashes, e.wanted) == 0 && len(keys) == 0 {
			continue
		}
		for i, wanted := range e.wanted {
			if wanted || slices.Contains(keys, r.Bucket.Key(i)) {
				row := r.Bucket.Row(i)
				uses := e.Layout.Stats(row).Count
				p.Add(r.Bucket.Key(i), e.hashes[i], max(uses, 1)-1, 0, row) // the Pull will count this use
				e.from = append(e.from, r)
			}
		}
	}
	if len(p.Keys) == 0 {
		return
	}
	e.onlyCurrent()
	e.refs = slices.Grow(e.refs[:0], len(p.Keys))[:len(p.Keys)]
	clear(e.refs)
	e.Table.InsertAhead(ctx, p, e.refs)
	e.passesOf = e.passesOf[:0]
	for i := range p.Keys {
		e.passesOf = append(e.passesOf, stopRequestOf(e.from[i]).pass())
	}
	e.Cache.Expect(e.refs, e.passesOf)
	e.Cache.Release(e.refs, false)
	taken := int64(0)
	for _, ref := range e.refs {
		if ref != 0 {
			taken++
		} else {
			e.full.Store(true)
		}
	}
	e.counts.rows.Add(taken)
}

// stopRequestOf returns the elevator's stop that a request is for, or nil for a request of
// a Pull.
func stopRequestOf(r *bucketfile.Request) *stopRequest {
	request, _ := r.User.(*stopRequest)
	return request
}

// onlyCurrent removes incoming rows that are in the cache or outside of buckets, and those whose
// bucket is no longer the one of its slot. No row is inserted into the cache meanwhile, so the
// remaining rows are the latest versions.
func (e *Elevator) onlyCurrent() {
	p := e.Incoming
	e.refs = slices.Grow(e.refs[:0], len(p.Keys))[:len(p.Keys)]
	e.Cache.Locate(p.Keys, p.Hashes, e.refs)
	e.IndexMu.RLock()
	defer e.IndexMu.RUnlock()
	n := 0
	last, current := (*bucketfile.Request)(nil), false // rows of a bucket follow each other
	for i, ref := range e.refs {
		r := e.from[i]
		if ref != 0 || e.Outside.HasHash(p.Hashes[i]) {
			continue // the bucket may have an older version
		}
		if r != last {
			last, current = r, e.Index.LiesAt(r.Slot, uint64(r.Location))
		}
		if !current {
			if request := stopRequestOf(r); slices.Contains(request.targetKeys(), p.Keys[i]) {
				request.target.again = append(request.target.again, p.Keys[i])
			}
			continue
		}
		p.Move(n, i)
		p.At[n], e.from[n] = uint32(n), r
		n++
	}
	p.Cut(n)
}

// keepLeaving copies the buckets of slots that have rows to be written, and the buckets that were
// read for an announced pass, which will write to them.
func (e *Elevator) keepLeaving() {
	if e.carry == nil {
		e.carry = e.Carried.New()
	}
	e.IndexMu.RLock()
	defer e.IndexMu.RUnlock()
	for _, r := range e.done {
		if request := r.User.(*stopRequest); r.Err == nil && len(request.targetKeys()) > 0 && e.Carried.Keep(request.target.carry, r) {
			continue
		}
		if r.Err == nil && e.hasLeaving(r.Slot) && !e.Carried.Keep(e.carry, r) {
			e.Index.Mark(r.Slot) // read it again in the next round
		}
	}
}

// hasLeaving reports whether rows of a slot have to be written. REQUIRES: IndexMu is held.
func (e *Elevator) hasLeaving(slot uint32) bool {
	return slot < e.Index.Slots() && e.Cache.LeavingOfSlot(uint64(slot), e.Index.MaskOf(slot)) > 0
}

// handOverCarried passes the collected buckets to the background writer, if they fill more than that many
// chunks.
func (e *Elevator) handOverCarried(chunks int) {
	if e.carry != nil && e.carry.Chunks() > chunks {
		e.Table.HandOver(e.carry)
		e.carry = nil
	}
}

// MarkIfLeaving marks a slot whose bucket a Pull has read and could not keep, if rows of the slot
// have to be written.
func (e *Elevator) MarkIfLeaving(slot uint32) {
	e.IndexMu.RLock()
	defer e.IndexMu.RUnlock()
	if e.hasLeaving(slot) {
		e.Index.Mark(slot)
	}
}
