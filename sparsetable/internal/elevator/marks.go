package elevator

import (
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/rowcache"
)

// marks reports whether the table has more rows than the cache can hold, so that rows must be
// evicted and the elevator may be useful. It also stores the result.
func (e *Elevator) marks() bool {
	if e.ReadOnly {
		return false
	}
	on := e.Files.LiveBytes() > e.Table.FitRows()/4*3*int64(layout.EntryBytes(e.Layout)) && e.Cache.NotesMissing()
	e.marking.Store(on)
	return on
}

// Marking reports whether the elevator may be useful, so that slots are marked. Any goroutine may
// call it.
func (e *Elevator) Marking() bool { return e.marking.Load() }

// MarkLeaving marks the slots of those rows of a released set that are likely to be evicted during
// the next round of the elevator. The elevator writes the other rows when it comes to their slots
// for another reason.
func (e *Elevator) MarkLeaving(refs []uint32) {
	const chunk = 1024
	var hashes [chunk]uint64
	for len(refs) > 0 {
		n := min(len(refs), chunk)
		leaving := hashes[:0]
		e.Cache.VisitLeaving(refs[:n], func(r rowcache.Entry) {
			if r.Flags&(rowcache.Dirty|checkpoint.Stored) == rowcache.Dirty|checkpoint.Stored {
				leaving = append(leaving, e.Hash.Of(r.Key))
			}
		})
		e.markBuckets(leaving)
		refs = refs[n:]
	}
}

// markDirty marks the slots of all dirty rows in memory that will have to be evicted. It is called
// once, for the rows that became dirty before the elevator began to mark slots.
func (e *Elevator) markDirty() {
	const chunk = 1024
	hashes := make([]uint64, 0, chunk)
	next, end := uint32(0), false
	for !end {
		hashes = hashes[:0]
		next, end = e.Cache.VisitFrom(next, rowcache.Pick{Has: rowcache.Dirty | checkpoint.Stored, Idle: true}, chunk, func(r rowcache.Entry) rowcache.Change {
			if !r.Needed {
				hashes = append(hashes, e.Hash.Of(r.Key))
			}
			return rowcache.Change{}
		})
		e.markBuckets(hashes)
	}
}

// markBuckets marks the slots whose buckets may have the keys of hashes, and returns the number of
// those keys.
func (e *Elevator) markBuckets(hashes []uint64) (found int) {
	const chunk = 1024
	var in [chunk]uint32
	var locations [chunk]uint64
	for len(hashes) > 0 {
		n := min(len(hashes), chunk)
		e.IndexMu.RLock()
		e.Index.Lookup(hashes[:n], in[:n], locations[:n])
		for i, slot := range in[:n] {
			if locations[i] != 0 {
				e.Index.Mark(slot)
				found++
			}
		}
		e.IndexMu.RUnlock()
		hashes = hashes[n:]
	}
	return found
}
