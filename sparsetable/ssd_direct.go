package sparsetable

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// Where the elevator's way does not pay, and where nobody knows what all announced
// passes lack, it serves them one by one: its stops are the buckets that the next
// pass lacks. They are on their way while the pass before is still pulled and
// trained: as the last reads of a Pull are submitted, those for the next pass
// follow, as many as its memory holds, and where nobody pulls, the prefetcher goes
// on with them. Otherwise the device would be idle from the last read of a Pull to
// the first of the next: nearly half of the time where Pulls follow each other and
// files are half dead.
//
// What such a read brings goes into the cache as any other stop's, and its bucket
// into what the pass carries, as if the pass's own Pull had read it (ssd_carry.go).

// chooseStops gives up the stops that are of no use any more: those for a pass
// that was pulled or withdrawn, and those of the other way of riding. REQUIRES:
// changing is held.
func (t *ssd) chooseStops() {
	e := &t.elevator
	if e.direct != (e.aim != nil) || e.aim != nil && e.aim.carry == nil {
		e.stops, e.next, e.aim = e.stops[:0], 0, nil
	}
}

// endDirect makes use of all that is on its way for passes to come, before one of
// them is taken off the list.
func (t *ssd) endDirect(ctx context.Context) {
	if e := &t.elevator; e.direct {
		t.alight(ctx, true)
		t.handRide(rideChunks)
	}
}

// goDirect submits reads for the next announced passes, as many as there is room
// for, and waits for none. REQUIRES: changing is held.
func (t *ssd) goDirect() {
	e := &t.elevator
	if !e.direct {
		return
	}
	t.chooseStops()
	for e.roomToSubmit() && (e.next < len(e.stops) || t.planPass()) {
		if t.submitStops() == 0 && e.queue.Pending() > 0 {
			return // it may be that all are on their way already
		}
	}
}

// directAhead is a turn while no Pull waits. It returns false if there is nothing
// to be read. REQUIRES: changing is held.
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

// planPass makes the buckets of what the next announced pass lacks the stops. It
// returns false if the next passes lack nothing, or where no more of their buckets
// can be carried.
func (t *ssd) planPass() bool {
	e := &t.elevator
	e.stops, e.next, e.aim = e.stops[:0], 0, nil
	for !e.full.Load() && t.roomToPrefetch() {
		a := t.nextToPrefetch()
		if a == nil {
			return false
		}
		t.planPart(a)
		if len(e.stops) > 0 {
			if a.carry == nil {
				a.carry = t.newCarry()
			}
			e.aim = a
			return true
		}
	}
	return false
}

// planPart plans the next part of a pass's keys: as many parts as there are, so that
// their stops have room. All keys of a slot are in one part, so that its bucket is
// read once: slots, too, are told by the lowest bits of hashes.
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
		hash := slots.Hash(key)
		if hash&(a.parts-1) != a.part || t.outside.hasHash(hash) {
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

// planChunk is how many keys planKeys looks at, at the most.
const planChunk = 1024

// planKeys adds the buckets of those of the keys that are not in the cache to the
// stops.
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

// readAgain leaves stops to be planned once more, now or later.
func (e *elevator) readAgain(stops []stop) {
	if e.aim != nil {
		for _, s := range stops {
			e.aim.again = append(e.aim.again, s.key)
		}
	}
}

// pass is the number of the pass that it is read for, -1 if there is none.
func (r *rideRequest) pass() int64 {
	if r == nil || r.aim == nil || r.aim.carry == nil {
		return -1
	}
	return r.aim.pass
}

// aimed is the keys that are read for a pass, if it still waits for them.
func (r *rideRequest) aimed() []uint64 {
	if r == nil || r.aim == nil || r.aim.carry == nil {
		return nil
	}
	return r.keys
}
