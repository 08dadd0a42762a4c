package ssd

import (
	"context"
	"errors"
	"slices"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/rowcache"
)

// pullState is the scratch memory of a Pull. It belongs to the holder of changing.
type pullState struct {
	queue      *bucketfile.Queue
	hashes     []uint64
	missing    []uint64 // slot << 32 | position
	absent     []uint32 // positions
	duplicates []uint32 // positions with the same key as an earlier missing one
	free       []*fetch
	done       []*bucketfile.Request
	submit     []*bucketfile.Request
	victims    []uint32

	rowcache.Incoming // the rows that go into the cache together in one step
	pullWants
	carry *carry.Buckets // buckets that the working set of the current Pull will carry; nil: none
	// insertedAnnounced says that the current Pull has also inserted rows for announced passes.
	insertedAnnounced bool
	counts            pullCounts

	windowPause int // number of Pulls until the window of announced passes may have memory again
}

// pullWants says what rows are inserted for.
type pullWants struct {
	prefetching bool // for announced passes, not for a Pull
	reading     bool // for a Pull that creates no rows
	divisible   bool // as PullDivisible
	trained     bool // as PullTrained
	ahead       bool // as PullAhead
}

// pullCounts counts what one Pull did.
type pullCounts struct {
	found, created, missing             int64
	negatives, falsePositives           int64
	bucketReads, deviceReads, readBytes int64
}

// pullBytesPerKey is the most memory per key that the slices of pullState take.
const pullBytesPerKey = 8 + 8 + 4 + 8 + 4

// fetch reads one bucket for the keys at some positions.
type fetch struct {
	request bucketfile.Request
	wanted  []uint64 // part of pullState.missing
}

// Pull implements Table.
func (t *Table) Pull(ctx context.Context, keys []uint64, mode contract.PullMode) (*contract.WorkingSet, error) {
	divisible, ahead := mode&contract.PullDivisible != 0, mode&contract.PullAhead != 0
	trained, patient := mode&contract.PullTrained != 0, mode&contract.PullPatient != 0
	mode = mode.Kind()
	if t.opts.ReadOnly && mode == contract.PullCreate {
		return nil, contract.ErrReadOnly
	}
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	defer t.elevator.Wake() // it paused for this Pull
	t.waitingPulls.Add(1)
	err := t.changing.Acquire(ctx)
	t.waitingPulls.Add(-1)
	if err != nil {
		return nil, err
	}
	defer t.changing.Release()
	if err := t.failure(); err != nil {
		return nil, err
	}
	if err := t.adaptBudget(ctx); err != nil {
		return nil, apierr.Of(err)
	}
	if err := t.waitsForRoom(ctx, mode == contract.PullCreate, patient); err != nil {
		return nil, apierr.Of(err)
	}
	t.pull.divisible, t.pull.trained, t.pull.ahead = divisible, trained, ahead
	ws, err := t.pullKeys(ctx, keys, mode)
	if err != nil {
		return nil, err
	}
	t.publish(ws)
	if t.inFlight.Closed() { // Close did not see the set, and waits for this call
		ws.Release()
		return nil, contract.ErrClosed
	}
	return &ws.WorkingSet, nil
}

// pullKeys is Pull without publish, which the caller calls next. REQUIRES: changing is held.
func (t *Table) pullKeys(ctx context.Context, keys []uint64, mode contract.PullMode) (*pinned, error) {
	for refs := t.sets.nextToMark(); refs != nil; refs = t.sets.nextToMark() {
		t.elevator.MarkLeaving(refs)
		t.sets.give(refs)
	}
	t.restoreWindow()
	refs, err := t.takeRefs(ctx, len(keys))
	if err != nil {
		return nil, err
	}
	p := &t.pull
	p.counts, p.reading, p.duplicates, p.insertedAnnounced = pullCounts{}, mode == contract.PullLookup, p.duplicates[:0], false
	p.hashes = p.hashes[:len(keys)]
	t.hashKeys(p.hashes, keys)
	t.elevator.FinishReads(ctx)
	pass, c := t.elevator.Take(p.hashes)
	if pass >= 0 {
		t.elevator.ForPull(ctx)
	}
	if p.carry = c; c == nil && mode == contract.PullCreate && !t.opts.ReadOnly {
		p.carry = t.carried.New()
	}
	p.counts.found = int64(t.cache.Find(pass, keys, p.hashes, refs))
	if mode == contract.PullLookup && !p.trained {
		t.unpinPlaceholders(refs)
	}
	if mode == contract.PullLookup || p.counts.found < int64(len(refs)) {
		err = t.pullMissing(ctx, keys, refs, mode)
	} else {
		err = ctx.Err()
	}
	for waited := false; errors.Is(err, errNoVictims) && t.makeMoreRoom(ctx, &waited); {
		found := p.counts.found
		err = t.pullMissing(ctx, keys, refs, mode)
		p.counts.found = found
	}
	if err != nil {
		return nil, t.pullFailed(refs, err)
	}
	ws := &pinned{refs: refs, mode: mode, carry: p.carry}
	var begin func()
	if p.ahead && mode == contract.PullCreate {
		ws.unchanged, begin = true, func() { t.begin(ws) }
	}
	slabs, shift, mask := t.cache.Slabs()
	rows := contract.Rows{Slabs: slabs, Shift: shift, Mask: mask, Words: t.layout.Words()}
	ws.WorkingSet = contract.NewSet(refs, rows, begin, func() { t.release(ws) })
	t.elevator.Submit()
	t.wakeIfFull()
	return ws, nil
}

// pullFailed releases what a Pull that failed with err has acquired, and returns the Pull's error.
func (t *Table) pullFailed(refs []uint32, err error) error {
	if errors.Is(err, errNoVictims) {
		err = t.pullOverBudget(len(refs), t.pinnedWith(refs))
	}
	t.elevator.Drop(t.pull.carry)
	t.cache.Release(refs, false)
	t.sets.Lock() // because the cache has counted these lookups and hits, too
	t.sets.stats.Lookups += int64(len(refs))
	t.sets.stats.Hits += t.pull.counts.found
	t.sets.Unlock()
	t.sets.give(refs)
	return apierr.Of(err)
}

// publish adds a set to the live ones, whose rows a snapshot treats as pinned. If a snapshot was
// fixed before, publish saves the set's rows for it, before the caller can change them.
func (t *Table) publish(ws *pinned) {
	t.sets.Lock()
	t.sets.add(ws)
	st, c := &t.sets.stats, &t.pull.counts
	st.Pulls++
	st.Lookups += int64(len(ws.refs))
	if ws.mode == contract.PullCreate {
		st.UpdatedRows += int64(len(ws.refs))
	}
	st.Hits += c.found
	st.Created += c.created
	st.Missing += c.missing
	st.FilterNegatives += c.negatives
	st.FalsePositives += c.falsePositives
	st.BucketReads += c.bucketReads
	st.DeviceReads += c.deviceReads
	st.ReadBytes += c.readBytes
	snapshot := t.checkpoints.Running()
	t.sets.Unlock()
	t.search.creating.Store(c.created > c.bucketReads)
	if ws.mode == contract.PullCreate && !ws.unchanged {
		snapshot.Save(ws.refs)
	}
}

// begin is WorkingSet.Begin of a set from PullAhead. It saves the set's rows for a snapshot that
// was fixed before; a snapshot that is fixed later treats them as rows that may be changing.
func (t *Table) begin(ws *pinned) {
	t.sets.Lock()
	ws.unchanged = false
	snapshot := t.checkpoints.Running()
	t.sets.Unlock()
	snapshot.Save(ws.refs)
}

// release is WorkingSet.Release.
func (t *Table) release(ws *pinned) {
	t.sets.Lock()
	// Both happen under the mutex of sets, so that a snapshot sees every updated row either in a
	// live set or dirty.
	t.cache.Release(ws.refs, ws.mode == contract.PullCreate)
	t.sets.remove(ws)
	t.sets.Unlock()
	if ws.mode == contract.PullCreate && t.elevator.Marking() {
		t.sets.markLater(ws.refs)
	} else {
		t.sets.give(ws.refs)
	}
	t.handOver(ws.carry)
	ws.refs, ws.carry = nil, nil
	t.wakeIfFull()
}

// unpinPlaceholders unpins rows that were never trained and sets their references to 0.
func (t *Table) unpinPlaceholders(refs []uint32) {
	var unpin []uint32
	t.cache.Visit(refs, func(i int, e rowcache.Entry) rowcache.Change {
		if !t.trained(e.Row) {
			unpin = append(unpin, e.Ref)
		}
		return rowcache.Change{}
	})
	if len(unpin) == 0 {
		return
	}
	t.cache.Release(unpin, false)
	slices.Sort(unpin)
	for i, ref := range refs {
		if _, placeholder := slices.BinarySearch(unpin, ref); placeholder {
			refs[i] = 0
		}
	}
}

// noteMissing sets missing to the positions without a reference and clears absent.
func (p *pullState) noteMissing(refs []uint32) {
	p.missing, p.absent = p.missing[:0], p.absent[:0]
	for i, ref := range refs {
		if ref == 0 {
			p.missing = append(p.missing, uint64(i))
		}
	}
}

// pullMissing finds or creates the rows of all positions without one.
func (t *Table) pullMissing(ctx context.Context, keys []uint64, refs []uint32, mode contract.PullMode) error {
	p := &t.pull
	t.findDuplicates(keys, refs) // duplicates that an earlier, failed attempt left
	p.noteMissing(refs)
	p.counts.found = int64(len(refs) - len(p.missing))
	if len(p.missing) == 0 {
		return ctx.Err()
	}
	p.takeDuplicates()
	if err := t.pullOnce(ctx, keys, refs, mode); err != nil {
		return err
	}
	t.findDuplicates(keys, refs)
	return nil
}

// pullOnce finds or creates the rows of the positions in missing, whose keys all differ.
func (t *Table) pullOnce(ctx context.Context, keys []uint64, refs []uint32, mode contract.PullMode) error {
	p := &t.pull
	if t.outside != nil {
		if err := t.fetchOutside(ctx, refs); err != nil {
			return err
		}
	}
	t.locate()
	if err := t.fetchMissing(ctx, keys, refs); err != nil {
		return err
	}
	if mode == contract.PullLookup {
		p.counts.missing += int64(len(p.absent))
		return nil
	}
	return t.create(ctx, keys, refs)
}

// locate moves the positions whose keys are in no bucket from missing to absent,
// and sorts the others by slot.
func (t *Table) locate() {
	p := &t.pull
	const chunk = 1024
	var hashes [chunk]uint64
	var in [chunk]uint32
	var locations [chunk]uint64
	kept := p.missing[:0]
	for rest := p.missing; len(rest) > 0; {
		n := min(len(rest), chunk)
		for j, at := range rest[:n] {
			hashes[j] = p.hashes[at]
		}
		t.indexMu.RLock()
		p.counts.negatives += int64(t.index.Lookup(hashes[:n], in[:n], locations[:n]))
		t.indexMu.RUnlock()
		for j, at := range rest[:n] {
			if locations[j] == 0 {
				p.absent = append(p.absent, uint32(at))
			} else {
				kept = append(kept, uint64(in[j])<<32|at)
			}
		}
		rest = rest[n:]
	}
	p.missing = kept
	slices.Sort(p.missing)
}

// createChunk is the number of rows created at a time.
const createChunk = 1024

// create creates rows for the absent positions.
func (t *Table) create(ctx context.Context, keys []uint64, refs []uint32) error {
	p := &t.pull
	slices.Sort(p.absent)
	for rest := p.absent; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(rest), createChunk)
		p.Clear()
		for _, at := range rest[:n] {
			p.Keys = append(p.Keys, keys[at])
			p.Hashes = append(p.Hashes, p.hashes[at])
			p.At = append(p.At, at)
		}
		if err := t.admit(ctx, n); err != nil {
			return err
		}
		if err := t.insert(ctx, &p.Incoming, refs, false); err != nil {
			return err
		}
		p.counts.created += int64(n)
		rest = rest[n:]
	}
	return nil
}
