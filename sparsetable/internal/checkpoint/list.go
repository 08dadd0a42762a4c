package checkpoint

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
)

// A snapshot has the rows that are in no bucket, or in a bucket as an older version, in
// a list of delta files, oldest first. It writes one file, with the rows that have
// changed since the last committed snapshot, and refers to the earlier ones for the
// others. These rows have Saved: they are dirty, and as one of the files has them.
// With several directories, it writes one file into each (cover.go). They have different
// keys, and count as one file in what follows.
//
// An earlier file also has rows that have changed since, and rows that were written to
// their bucket since and may have left the cache. Nothing in the file tells them apart.
// The rule is this. Of the rows of a file F that was fixed at the instant f, a snapshot
// has those for which
//
//	(1) no later file of its list has the key, and
//	(2) the index of the snapshot has no bucket for the key's slot, or one that was
//	    written before f (WrittenBefore).
//
// The rule is exact, because all code keeps to this invariant: no bucket of a slot was
// written since the instant of the file that has a row of the slot with Saved. Whoever
// writes the bucket makes the slot's dirty rows clean, and takes Saved from those that
// stay dirty because they are pinned (collectDirty); so does a merge of slots, which
// leaves the one bucket of two slots where it is (ForgetSaved). Hence
//
//   - the snapshot has each of its dirty rows: a row without Saved is in its own file,
//     and for a row with Saved (2) holds in the file that has it as it is;
//   - what the rule lets through is right: in F, the row was dirty at f. By (2) it was not
//     written to a bucket since. No other way leads out of the cache, except Expire, after
//     which a snapshot begins a new list. So the row is still dirty. If it had changed, it
//     would have lost Saved, and the next snapshot would have written it: against (1).
const Saved = rowcache.Saved

const (
	// A list has at most maxDeltas layers (shorten.go). A snapshot writes all dirty rows, and refers to no
	// earlier file, where its list would have more than foldRows rows for each dirty row.
	maxDeltas = 64
	foldRows  = 2
)

// WrittenBefore reports whether the bucket at a location, which may be 0, was written
// before the instant of a delta file that was there when the table was opened.
func (c *Store) WrittenBefore(d *catalog.Delta, loc bucketfile.Location) bool {
	if loc == 0 {
		return true
	}
	// What matters is when a file was begun, not its number, because numbers are given again.
	begun, opened := c.files.Begun(loc.File())
	return opened && Before(d, loc, begun, c.Deltas.Unit)
}

// inherit returns the files to which the snapshot refers besides its own, in a new list
// of its own; none if it is to write all dirty rows. REQUIRES: no bucket is written, and no
// row is pinned or released.
func (s *Snapshot) inherit(st rowcache.Stats) []catalog.Delta {
	base := s.c.lists.base
	if len(base) == 0 || len(Layers(base)) >= maxDeltas || st.Saved == 0 || DirtyRows(base)+st.Dirty-st.Saved > foldRows*st.Dirty {
		return nil
	}
	return slices.Clone(base)
}

// DirtyRows is how many rows the files have outside of buckets, outdated ones included.
func DirtyRows(list []catalog.Delta) (rows int64) {
	for _, d := range list {
		rows += d.DirtyRows
	}
	return rows
}

// WithDirtyRows leaves out the files that have only clean rows.
func WithDirtyRows(list []catalog.Delta) (kept []catalog.Delta) {
	for _, d := range list {
		if d.DirtyRows > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// ForgetSaved takes Saved from the rows of a slot that stays dirty while its bucket
// becomes another one. REQUIRES: the caller is the one that
// writes buckets.
func (c *Store) ForgetSaved(slot uint32, mask uint64) {
	c.Cache.ForEachOfSlot(uint64(slot), mask, func(rowcache.Entry) rowcache.Change {
		return rowcache.Change{Clear: Saved}
	})
}
