package sparsetable

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
)

// A snapshot has the rows that are in no bucket, or in a bucket as an older version, in
// a list of delta files, oldest first. It writes one file, with the rows that have
// changed since the last committed snapshot, and refers to the earlier ones for the
// others. These have rowSaved: they are dirty, and as one of the files has them.
//
// An earlier file also has rows that have changed since, and rows that were written to
// their bucket since and may have left the cache. Nothing in the file tells them apart.
// The rule is this. Of the rows of a file F that was fixed at the instant f, a snapshot
// has those for which
//
//	(1) no later file of its list has the key, and
//	(2) the index of the snapshot has no bucket for the key's slot, or one that was
//	    written before f (writtenBefore).
//
// The rule is exact, because all code keeps to this invariant: no bucket of a slot was
// written since the instant of the file that has a row of the slot with rowSaved. Whoever
// writes the bucket makes the slot's dirty rows clean, and takes rowSaved from those that
// stay dirty because they are pinned (collectDirty); so does a merge of slots, which
// leaves the one bucket of two slots where it is (forgetSaved). Hence
//
//   - the snapshot has each of its dirty rows: a row without rowSaved is in its own file,
//     and for a row with rowSaved (2) holds in the file that has it as it is;
//   - what the rule lets through is right: in F, the row was dirty at f. By (2) it was not
//     written to a bucket since. No other way leads out of the cache, except Expire, after
//     which a snapshot begins a new list. So the row is still dirty. If it had changed, it
//     would have lost rowSaved, and the next snapshot would have written it: against (1).
const rowSaved = rowcache.Saved

const (
	// A snapshot writes all dirty rows into one file, and refers to that alone, where its
	// list would have more than maxDeltas files, or more than foldRows rows for each
	// dirty row.
	maxDeltas = 16
	foldRows  = 2
)

// writtenBefore reports whether the bucket at a location, which may be 0, was written
// before the instant of a delta file that was there when the table was opened.
func (t *ssd) writtenBefore(d *catalog.Delta, loc bucketfile.Location) bool {
	if loc == 0 {
		return true
	}
	// What matters is when a file was begun, not its number, because numbers are given again.
	if begun, opened := t.files.Begun(loc.File()); !opened || begun >= d.Seq {
		return false
	}
	for _, f := range d.Growing {
		if f.File == loc.File() {
			return loc.Offset()*int64(t.unit) < f.Bytes
		}
	}
	return true
}

// withDeltas fills in what the records of older versions lack. The rows of such a
// snapshot are in one file. The bucket files that the snapshot knows never grow once it is
// open.
func withDeltas(s catalog.Snapshot) catalog.Snapshot {
	if _, old := s.Counters[counterDirtyBytes]; !old || len(s.Deltas) != 1 {
		return s
	}
	d := s.Deltas[0]
	d.Snapshot, d.Seq = s.ID, uint64(s.Counters[counterSeq])
	d.DirtyBytes, d.DirtyRows = s.Counters[counterDirtyBytes], s.Counters[counterDirtyRows]
	s.Deltas = []catalog.Delta{d}
	return s
}

// inherit returns the files to which the snapshot refers besides its own, in a new list
// of its own; none if it is to write all dirty rows. REQUIRES: saving, rewrite and mu are held.
func (s *ssdSnapshot) inherit(st rowcache.Stats) []catalog.Delta {
	base := s.t.deltas.base
	if len(base) == 0 || len(base) >= maxDeltas || st.Saved == 0 || dirtyRows(base)+st.Dirty-st.Saved > foldRows*st.Dirty {
		return nil
	}
	return slices.Clone(base)
}

// dirtyRows is how many rows the files have outside of buckets, outdated ones included.
func dirtyRows(list []catalog.Delta) (rows int64) {
	for _, d := range list {
		rows += d.DirtyRows
	}
	return rows
}

// withDirty leaves out the files that have only clean rows.
func withDirty(list []catalog.Delta) (kept []catalog.Delta) {
	for _, d := range list {
		if d.DirtyRows > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// forgetSaved takes rowSaved from the rows of a slot that stays dirty while its bucket
// becomes another one. REQUIRES: rewrite is held.
func (t *ssd) forgetSaved(slot uint32, mask uint64) {
	t.cache.ForEachOfSlot(uint64(slot), mask, func(rowcache.Entry) rowcache.Change {
		return rowcache.Change{Clear: rowSaved}
	})
}
