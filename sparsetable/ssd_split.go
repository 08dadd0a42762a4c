package sparsetable

import (
	"errors"
	"math/bits"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// totalRows is an upper bound of the rows that there are: those in buckets and
// those in the cache that may be new.
func (t *ssd) totalRows() int64 {
	st := t.cache.Stats()
	return t.rewrite.stored + st.Rows - st.Marked2
}

// split splits slots until they are as many as the rows want. It takes the
// dirty rows of each along, so that a bucket is written no more often for being
// split. REQUIRES: rewrite is held.
func (t *ssd) split() error {
	if t.rewrite.scanning > 0 || t.readOnly {
		return nil
	}
	total := t.totalRows()
	w := &t.rewrite.rewriter
	var batch []uint32
	for t.index.ShouldSplit(total) {
		// The slots that are split next follow one another, to the end of the
		// round.
		from, to := t.index.NextSplit()
		level := uint32(1) << (bits.Len32(to) - 1)
		batch = batch[:0]
		for s := from; s < level && len(batch) < rewriteBatch/2; s++ {
			batch = append(batch, s)
		}
		batch = batch[:t.batchOf(batch)]
		room, err := t.roomForSlots(len(batch))
		if err != nil || !room {
			return err
		}
		// They must be split in order, however their buckets arrive: so those
		// with a bucket are read one after the other from a batch of reads.
		for len(batch) > 0 && t.index.ShouldSplit(total) {
			n := 1
			for n < len(batch) && (t.index.Location(batch[n]) == 0) == (t.index.Location(batch[0]) == 0) {
				n++
			}
			if err := t.splitSlots(batch[:n]); err != nil {
				return err
			}
			w.counts.splits += int64(n)
			batch = batch[n:]
		}
	}
	return nil
}

// roomForSlots reports whether the index may grow by n slots.
func (t *ssd) roomForSlots(n int) (bool, error) {
	grown := slots.BytesFor(t.plan.indexOptions(), (int64(t.index.Slots())+int64(n))*int64(t.plan.targetRows))
	t.indexMu.RLock() // for what a capture holds
	have := t.index.Bytes() - t.index.CaptureBytes()
	t.indexMu.RUnlock()
	if more := grown - have; more > 0 {
		if err := t.reserve(more); errors.Is(err, errNoVictims) {
			return false, nil // buckets grow instead
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// splitSlots splits the slots of list, the next ones to be split, all of which
// have a bucket or none of which has.
func (t *ssd) splitSlots(list []uint32) error {
	if t.index.Location(list[0]) == 0 {
		t.indexMu.Lock()
		defer t.indexMu.Unlock()
		for range list {
			if err := t.index.Grow(); err != nil {
				return err
			}
		}
		return nil
	}
	// Buckets arrive in any order; those ahead of their turn wait.
	w := &t.rewrite.rewriter
	waiting := make([]*bucketfile.Request, len(list))
	w.submit = w.submit[:0]
	if cap(w.requests) < len(list) {
		w.requests = make([]bucketfile.Request, len(list))
	}
	for i, slot := range list {
		w.requests[i] = bucketfile.Request{Slot: slot, Location: bucketfile.Location(t.index.Location(slot)), User: i}
		w.submit = append(w.submit, &w.requests[i])
	}
	reads, bytes := w.queue.DeviceReads()
	w.queue.Submit(w.submit)
	var failed error
	for next := 0; next < len(list); {
		if waiting[next] == nil {
			w.done = w.queue.Wait(w.done[:0], 1)
			for _, r := range w.done {
				waiting[r.User.(int)] = r
			}
			continue
		}
		r := waiting[next]
		if failed == nil {
			failed = r.Err
		}
		if failed == nil {
			failed = t.splitSlot(list[next], &r.Bucket)
		}
		w.queue.Finish(waiting[next : next+1])
		next++
	}
	r, b := w.queue.DeviceReads()
	w.counts.reads += int64(r - reads)
	w.counts.readBytes += int64(b - bytes)
	return failed
}

// splitSlot splits the next slot, whose bucket is old.
func (t *ssd) splitSlot(from uint32, old *bucketfile.Bucket) error {
	next, to := t.index.NextSplit()
	if next != from {
		panic("sparsetable: slots are split out of order")
	}
	w := &t.rewrite.rewriter
	t.collectDirty(from, slotMask(from, t.index.Slots()))
	bit := uint64(1) << (bits.Len32(to) - 1)
	var locations [2]bucketfile.Location
	var rows [2]int
	var hashes [2][]uint64
	for side := range locations {
		w.merge(old, func(h uint64) bool { return (h&bit != 0) == (side == 1) })
		slot := from
		if side == 1 {
			slot = to
		}
		loc, err := t.writeBucket(slot)
		if err != nil {
			t.dirtyAgain()
			return errors.Join(err, t.files.Release(locations[0]))
		}
		locations[side], rows[side] = loc, len(w.keys)
		hashes[side] = append(hashes[side], w.hashes...)
	}
	prev := bucketfile.Location(t.index.Location(from))
	t.indexMu.Lock()
	if err := t.index.Grow(); err != nil {
		t.indexMu.Unlock()
		t.dirtyAgain()
		return errors.Join(err, t.files.Release(locations[0]), t.files.Release(locations[1]))
	}
	for side, slot := range [2]uint32{from, to} {
		t.index.Set(slot, uint64(locations[side]), rows[side])
		t.index.SetFilter(slot, hashes[side])
	}
	t.indexMu.Unlock()
	t.rewrite.stored += int64(rows[0] + rows[1] - old.Len())
	t.nowStored()
	return t.files.Release(prev)
}
