package ssd

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

const (
	// fetchBatch is how many requests are submitted with one system call, while the index is
	// locked.
	fetchBatch = 64
	// maxFetches bounds the requests in flight. It is several times a device's queue depth, so that
	// neighbouring buckets can be read together.
	maxFetches = 1024
)

// fetchMissing reads the buckets of the missing positions, which are sorted by
// slot, and puts their rows into the cache. Positions whose keys are not in their
// bucket are added to absent.
func (t *Table) fetchMissing(ctx context.Context, keys []uint64, refs []uint32) error {
	p := &t.pull
	reads, bytes := p.queue.DeviceReads()
	inFlight := int64(0) // bytes
	var failed error
	for rest := p.missing; len(rest) > 0 || p.queue.Pending() > 0; {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			rest = nil // submit nothing more, and wait for the reads in flight
		}
		for len(rest) > 0 && p.queue.Pending() < maxFetches && inFlight < t.plan.ReadBytes/4 {
			rest = t.submit(rest, &inFlight)
		}
		if p.queue.Pending() == 0 {
			continue
		}
		if len(rest) == 0 {
			t.elevator.Submit() // reads for the next passes keep the device busy while this pass is finished
		}
		p.done = p.queue.Wait(p.done[:0], min(p.queue.Pending(), fetchBatch/2))
		for _, r := range p.done {
			inFlight -= int64(r.Location.Units()) * int64(t.files.Unit())
		}
		if err := t.takeFetched(ctx, keys, refs, failed == nil); err != nil && failed == nil {
			failed = err
		}
		p.queue.Finish(p.done)
		for _, r := range p.done {
			p.free = append(p.free, r.User.(*fetch))
		}
	}
	r, b := p.queue.DeviceReads()
	p.counts.deviceReads += int64(r - reads)
	p.counts.readBytes += int64(b - bytes)
	return failed
}

// submit starts reading the buckets of the first positions of rest and returns
// the others.
func (t *Table) submit(rest []uint64, inFlight *int64) []uint64 {
	p := &t.pull
	p.submit = p.submit[:0]
	// The batch has all keys of fetchBatch slots, as they were when the keys were sorted.
	n, buckets := 0, 0
	for n < len(rest) && buckets < fetchBatch {
		slot := rest[n] >> 32
		for n < len(rest) && rest[n]>>32 == slot {
			n++
		}
		buckets++
	}
	batch := rest[:n]
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	// Slots may have been split since then.
	for i, m := range batch {
		batch[i] = uint64(t.index.Slot(p.hashes[uint32(m)]))<<32 | m&(1<<32-1)
	}
	slices.Sort(batch)
	for from := 0; from < len(batch); {
		slot := uint32(batch[from] >> 32)
		to := from + 1
		for to < len(batch) && uint32(batch[to]>>32) == slot {
			to++
		}
		wanted := batch[from:to]
		from = to
		location := bucketfile.Location(t.index.Location(slot))
		if location == 0 {
			for _, m := range wanted {
				p.absent = append(p.absent, uint32(m))
			}
			continue
		}
		f := p.newFetch()
		f.request = bucketfile.Request{Slot: slot, Location: location, User: f}
		f.wanted = wanted
		*inFlight += int64(location.Units()) * int64(t.files.Unit())
		p.submit = append(p.submit, &f.request)
		if t.elevator.Marking() {
			t.index.Unmark(slot) // the elevator need not stop
		}
	}
	p.counts.bucketReads += int64(len(p.submit))
	// Submitted under indexMu; the comment on Table says why.
	p.queue.Submit(p.submit)
	return rest[n:]
}

func (p *pullState) newFetch() *fetch {
	if n := len(p.free); n > 0 {
		f := p.free[n-1]
		p.free = p.free[:n-1]
		return f
	}
	return new(fetch)
}

// takeFetched puts the wanted rows of finished requests into the cache.
func (t *Table) takeFetched(ctx context.Context, keys []uint64, refs []uint32, use bool) error {
	p := &t.pull
	p.Clear()
	for _, r := range p.done {
		if r.Err != nil {
			return r.Err
		}
		if !use {
			continue
		}
		t.match(r.User.(*fetch), &r.Bucket, keys)
		if kept := p.carry != nil && t.carried.Keep(p.carry, r); !kept && t.elevator.Marking() {
			t.elevator.MarkIfLeaving(r.Slot)
		}
	}
	if p.insertedAnnounced {
		t.useCached(refs)
	}
	if len(p.Keys) > 0 {
		if err := t.insert(ctx, &p.Incoming, refs, true); err != nil {
			return err
		}
	}
	if use && t.elevator.Marking() {
		p.insertedAnnounced = true
		t.elevator.InsertAnnounced(ctx, p.done) // half of these buckets also have rows that later passes need
	}
	return nil
}

// useCached takes wanted rows from the cache if they are there by now. When slots were split or
// merged since the Pull looked up its keys, it may read a bucket a second time for other rows. The
// first read may already have put these into the cache, because announced passes need them, too.
func (t *Table) useCached(refs []uint32) {
	p := &t.pull
	cached := p.Refs()
	t.cache.Find(-1, p.Keys, p.Hashes, cached)
	n := 0
	for i, ref := range cached {
		if ref != 0 {
			refs[p.At[i]] = ref
			continue
		}
		p.Move(n, i)
		n++
	}
	p.Cut(n)
}

// match adds the wanted rows of a bucket to the batch.
func (t *Table) match(f *fetch, b *bucketfile.Bucket, keys []uint64) {
	p := &t.pull
	left := f.wanted
	for i := 0; i < b.Len() && len(left) > 0; i++ {
		key := b.Key(i)
		for j, m := range left {
			at := uint32(m)
			if keys[at] != key {
				continue
			}
			row := b.Row(i)
			p.Add(key, p.hashes[at], t.layout.Stats(row).Count, at, row)
			last := len(left) - 1
			left[j], left[last] = left[last], left[j]
			left = left[:last]
			break
		}
	}
	p.counts.falsePositives += int64(len(left))
	for _, m := range left {
		p.absent = append(p.absent, uint32(m))
	}
}
