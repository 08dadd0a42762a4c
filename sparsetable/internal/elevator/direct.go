package elevator

import (
	"context"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// prefetchPasses is how many passes beyond the one pulled last are read ahead one by one. Reading
// farther ahead gains little, because the number of missing keys varies little from pass to pass.
const prefetchPasses = 8

// dropStaleStops drops stops that are no longer useful: those for a pass that was pulled or withdrawn,
// and those planned in the other mode (direct or not).
func (e *Elevator) dropStaleStops() {
	if e.direct != (e.target != nil) || e.target != nil && e.target.carry == nil {
		e.stops, e.next, e.target = e.stops[:0], 0, nil
	}
}

// FinishReads waits for the reads in flight for announced passes and uses their results, before one of
// the passes is removed from the list.
func (e *Elevator) FinishReads(ctx context.Context) {
	if e.direct {
		e.collect(ctx, true)
		e.handOverCarried(handOverChunks)
	}
}

// Submit submits reads for the next announced passes, as far as there is room, without waiting for
// them.
func (e *Elevator) Submit() {
	if !e.direct {
		return
	}
	e.dropStaleStops()
	for e.roomToSubmit() && (e.next < len(e.stops) || e.planPass()) {
		if e.submitStops() == 0 && e.queue.Pending() > 0 {
			return // probably all the stops are already in flight
		}
	}
}

// directAhead is one turn of the prefetcher in direct mode, while no Pull waits. It returns false
// if there is nothing to read.
func (e *Elevator) directAhead(ctx context.Context) bool {
	e.Submit()
	if e.queue.Pending() == 0 {
		e.handOverCarried(0)
		return false
	}
	e.collect(ctx, false)
	e.handOverCarried(handOverChunks)
	return true
}

// planPass sets the stops to the buckets of the rows that the next announced pass lacks. It returns
// false if the next passes lack no rows, or if no more of their buckets can be carried: each of
// their rows would then cost a second read when it leaves.
func (e *Elevator) planPass() bool {
	e.stops, e.next, e.target = e.stops[:0], 0, nil
	for !e.full.Load() && e.Carried.HasRoom() {
		a := e.passes.next(prefetchPasses)
		if a == nil {
			return false
		}
		e.planPart(a)
		if len(e.stops) > 0 {
			if a.carry == nil {
				a.carry = e.Carried.New()
			}
			e.target = a
			return true
		}
	}
	return false
}

// planPart plans the stops for the next part of a pass's keys. The keys are divided into as many
// parts as necessary for the stops of a part to have room. Parts are divided by the lowest bits of
// the hashes, like slots, so all keys of a slot are in one part and its bucket is read once.
func (e *Elevator) planPart(a *announcement) {
	if a.part == 0 {
		a.parts = 1
		e.IndexMu.RLock()
		for most := uint64(e.Index.Slots()); a.parts <= most/4 && uint64(len(a.list)) > a.parts*uint64(cap(e.stops)); a.parts *= 2 {
		}
		e.IndexMu.RUnlock()
	}
	keys, hashes := e.keys[:0], e.hashes[:0]
	for _, key := range a.list {
		hash := e.Hash.Of(key)
		if hash&(a.parts-1) != a.part || e.Outside.HasHash(hash) {
			continue
		}
		keys, hashes = append(keys, key), append(hashes, hash)
		if len(keys) == planChunk {
			e.planKeys(a, keys, hashes)
			keys, hashes = keys[:0], hashes[:0]
		}
	}
	e.planKeys(a, keys, hashes)
	e.keys, e.hashes = keys, hashes
	slices.SortFunc(e.stops, byPlace)
	if a.part++; a.part == a.parts {
		a.list, a.part = nil, 0
	}
}

// planChunk is the maximum number of keys for one call of planKeys.
const planChunk = 1024

// planKeys adds the buckets of the keys that are not in the cache to the stops.
func (e *Elevator) planKeys(a *announcement, keys, hashes []uint64) {
	e.refs = slices.Grow(e.refs[:0], len(keys))[:len(keys)]
	e.Cache.Locate(keys, hashes, e.refs)
	var in [planChunk]uint32
	var locations [planChunk]uint64
	e.IndexMu.RLock()
	e.Index.Lookup(hashes, in[:len(keys)], locations[:len(keys)])
	e.IndexMu.RUnlock()
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

// readAgain adds the keys of stops to the list of keys to be planned again.
func (e *Elevator) readAgain(stops []stop) {
	if e.target != nil {
		for _, s := range stops {
			e.target.again = append(e.target.again, s.key)
		}
	}
}

// pass is the number of the pass that the request is for, or -1 if there is none.
func (r *stopRequest) pass() int64 {
	if r == nil || r.target == nil || r.target.carry == nil {
		return -1
	}
	return r.target.pass
}

// targetKeys returns the keys that the request reads for its pass, if that pass still waits for them.
func (r *stopRequest) targetKeys() []uint64 {
	if r == nil || r.target == nil || r.target.carry == nil {
		return nil
	}
	return r.keys
}
