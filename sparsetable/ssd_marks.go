package sparsetable

import (
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/rowcache"
)

// marks reports whether the table has more rows than the cache holds, so that rows
// must leave for others and the elevator may be of use. It also stores the result.
func (t *ssd) marks() bool {
	e := &t.elevator
	if e.queue == nil || t.opts.ReadOnly {
		return false
	}
	space, _ := t.files.Space()
	on := space.LiveBytes > t.fitRows.Load()/4*3*int64(layout.EntryBytes(t.layout)) && t.cache.NotesMissing()
	e.marking.Store(on)
	return on
}

// markReleased marks the slots for the sets that were released since the last Pull,
// and takes their references back.
func (t *ssd) markReleased() {
	for refs := t.sets.nextToMark(); refs != nil; refs = t.sets.nextToMark() {
		t.markLeaving(refs)
		t.sets.give(refs)
	}
}

// markLeaving marks the slots of those rows of a released set that are likely to leave in the next
// round of the elevator. It writes the others where it comes to their slots for another reason.
func (t *ssd) markLeaving(refs []uint32) {
	const chunk = 1024
	var hashes [chunk]uint64
	for len(refs) > 0 {
		n := min(len(refs), chunk)
		leaving := hashes[:0]
		t.cache.VisitLeaving(refs[:n], func(e rowcache.Entry) {
			if e.Flags&(rowcache.Dirty|rowStored) == rowcache.Dirty|rowStored {
				leaving = append(leaving, t.hash.Of(e.Key))
			}
		})
		t.markBuckets(leaving)
		refs = refs[n:]
	}
}

// markDirty marks the slots of all dirty rows in memory that will have to leave. It
// is called once, for the rows that became dirty before slots were marked.
func (t *ssd) markDirty() {
	const chunk = 1024
	hashes := make([]uint64, 0, chunk)
	next, end := uint32(0), false
	for !end {
		hashes = hashes[:0]
		next, end = t.cache.VisitFrom(next, rowcache.Pick{Has: rowcache.Dirty | rowStored, Idle: true}, chunk, func(e rowcache.Entry) rowcache.Change {
			if !e.Needed {
				hashes = append(hashes, t.hash.Of(e.Key))
			}
			return rowcache.Change{}
		})
		t.markBuckets(hashes)
	}
}
