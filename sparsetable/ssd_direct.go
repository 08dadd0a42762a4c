package sparsetable

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// Where going through all files does not pay, and where the table does not know
// what all announced passes lack, the elevator serves the passes one by one (direct
// mode): its stops are the buckets that the next pass lacks. These are read while
// the pass before is still pulled and trained. After the last reads of a Pull, the
// reads for the next pass are submitted, as many as the elevator's memory holds;
// when no Pull is running, the prefetcher goes on with them. Otherwise the device
// would be idle from the last read of a Pull to the first read of the next, which
// is nearly half of the time where Pulls follow each other and half of the bytes in
// files are dead.
//
// The rows that such a read brings go into the cache, as those of any other stop. A
// copy of the bucket is carried by the pass, as if the pass's own Pull had read it
// (ssd_carry.go).

// chooseStops drops the stops that are no longer of use: those for a pass that was
// pulled or withdrawn, and those planned in the other mode (direct or not).
// REQUIRES: changing is held.
func (t *ssd) chooseStops() {
	e := &t.elevator
	if e.direct != (e.aim != nil) || e.aim != nil && e.aim.carry == nil {
		e.stops, e.next, e.aim = e.stops[:0], 0, nil
	}
}

// endDirect waits for the reads in flight for announced passes and makes use of
// them, before one of the passes is taken off the list.
func (t *ssd) endDirect(ctx context.Context) {
	if e := &t.elevator; e.direct {
		t.alight(ctx, true)
		t.handRide(rideChunks)
	}
}

// goDirect submits reads for the next announced passes, as many as there is room
// for, and does not wait for them. REQUIRES: changing is held.
func (t *ssd) goDirect() {
	e := &t.elevator
	if !e.direct {
		return
	}
	t.chooseStops()
	for e.roomToSubmit() && (e.next < len(e.stops) || t.planPass()) {
		if t.submitStops() == 0 && e.queue.Pending() > 0 {
			return // probably all the stops are in flight already
		}
	}
}

// directAhead is one turn of the prefetcher in direct mode, while no Pull waits. It
// returns false if there is nothing to read. REQUIRES: changing is held.
func (t *ssd) directAhead(ctx context.Context) bool {
	e := &t.elevator
	t.goDirect()
	if e.queue.Pending() == 0 {
		t.handRide(0)
		return false
	}
	t.alight(ctx, false)
	t.handRide(rideChunks)
	return true
}

// planPass sets the stops to the buckets of the rows that the next announced pass
// lacks. It returns false if the next passes lack no rows, or if no more of their
// buckets can be carried.
func (t *ssd) planPass() bool {
	e := &t.elevator
	e.stops, e.next, e.aim = e.stops[:0], 0, nil
	for !e.full.Load() && t.roomToPrefetch() {
		a := t.announced.next(prefetchPasses)
		if a == nil {
			return false
		}
		t.planPart(a)
		if len(e.stops) > 0 {
			if a.carry == nil {
				a.carry = t.carried.New()
			}
			e.aim = a
			return true
		}
	}
	return false
}

// planPart plans the stops for the next part of a pass's keys. The keys are divided
// into as many parts as are necessary for the stops of a part to have room. Parts
// are divided by the lowest bits of the hashes, as slots are, so all keys of a slot
// are in one part and its bucket is read once.
func (t *ssd) planPart(a *announcement) {
	e := &t.elevator
	if a.part == 0 {
		a.parts = 1
		t.indexMu.RLock()
		for most := uint64(t.index.Slots()); a.parts <= most/4 && uint64(len(a.list)) > a.parts*uint64(cap(e.stops)); a.parts *= 2 {
		}
		t.indexMu.RUnlock()
	}
	keys, hashes := e.keys[:0], e.hashes[:0]
	for _, key := range a.list {
		hash := t.hash.Of(key)
		if hash&(a.parts-1) != a.part || t.outside.HasHash(hash) {
			continue
		}
		keys, hashes = append(keys, key), append(hashes, hash)
		if len(keys) == planChunk {
			t.planKeys(a, keys, hashes)
			keys, hashes = keys[:0], hashes[:0]
		}
	}
	t.planKeys(a, keys, hashes)
	e.keys, e.hashes = keys, hashes
	slices.SortFunc(e.stops, byPlace)
	if a.part++; a.part == a.parts {
		a.list, a.part = nil, 0
	}
}

// planChunk is the most keys that one call of planKeys takes.
const planChunk = 1024

// planKeys adds to the stops the buckets of those keys that are not in the cache.
func (t *ssd) planKeys(a *announcement, keys, hashes []uint64) {
	e := &t.elevator
	e.refs = slices.Grow(e.refs[:0], len(keys))[:len(keys)]
	t.cache.Locate(keys, hashes, e.refs)
	var in [planChunk]uint32
	var locations [planChunk]uint64
	t.indexMu.RLock()
	t.index.Lookup(hashes, in[:len(keys)], locations[:len(keys)])
	t.indexMu.RUnlock()
	for i, ref := range e.refs {
		switch {
		case ref != 0 || locations[i] == 0:
		case len(e.stops) == cap(e.stops):
			a.again = append(a.again, keys[i])
		default:
			e.stops = append(e.stops, stop{bucketfile.Location(locations[i]), in[i], keys[i]})
		}
	}
}

// readAgain puts the keys of stops on the list of those that are planned once more.
func (e *elevator) readAgain(stops []stop) {
	if e.aim != nil {
		for _, s := range stops {
			e.aim.again = append(e.aim.again, s.key)
		}
	}
}

// pass is the number of the pass that the request is for, or -1 if there is none.
func (r *rideRequest) pass() int64 {
	if r == nil || r.aim == nil || r.aim.carry == nil {
		return -1
	}
	return r.aim.pass
}

// aimed returns the keys that the request is to read for its pass, if that pass
// still waits for them.
func (r *rideRequest) aimed() []uint64 {
	if r == nil || r.aim == nil || r.aim.carry == nil {
		return nil
	}
	return r.keys
}
