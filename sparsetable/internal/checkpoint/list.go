package checkpoint

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
)

// A snapshot has the rows that are in no bucket, or whose bucket has an older version, in a list of
// delta files, oldest first. It writes one file, with the rows that have changed since the last
// committed snapshot, and refers to earlier files for the others. Those others have the flag Saved:
// they are dirty, and one of the files has them unchanged. With several directories, a snapshot
// writes one file into each (cover.go). These have different keys and count as one file in what
// follows.
//
// An earlier file also has rows that have changed since, and rows that were written to their bucket
// since and may have left the cache. Nothing in the file distinguishes them, but the following rule
// does. Of the rows of a file F that was fixed at the instant f, a snapshot has those for which
//
//	(1) no later file of its list has the key, and
//	(2) the index of the snapshot has no bucket for the key's slot, or one that was
//	    written before f (WrittenBefore).
//
// The rule is exact, because all code maintains this invariant: if a row has Saved, no bucket of
// its slot was written since the instant of the file that has the row. Code that writes the bucket
// makes the slot's dirty rows clean, and clears Saved of those that stay dirty because they are
// pinned (ssd's collectDirty). So does a merge of slots that leaves the only bucket of the two
// slots where it is (ForgetSaved). Hence
//
//   - the snapshot has each of its dirty rows: a row without Saved is in its own file; for a row
//     with Saved, (2) holds in the file that has it unchanged;
//   - the rows that satisfy the rule are right: in F, such a row was dirty at f. By (2) it was not
//     written to a bucket since. A row leaves the cache in no other way, except by Expire, after
//     which a snapshot begins a new list. So the row is still dirty. If it had changed, it would
//     have lost Saved, and the next snapshot would have written it, which contradicts (1).
const Saved = rowcache.Saved

const (
	// A list has at most maxDeltas layers (shorten.go). If its list would have more than foldRows
	// rows for each dirty row, a snapshot writes all dirty rows and refers to no earlier file.
	maxDeltas = 64
	foldRows  = 2
)

// WrittenBefore reports whether the bucket at loc, which may be 0, was written before the instant
// of d, a delta file that existed when the table was opened.
func (c *Store) WrittenBefore(d *catalog.Delta, loc bucketfile.Location) bool {
	if loc == 0 {
		return true
	}
	// Compare when the file was begun, not its number, because numbers are reused.
	begun, opened := c.files.Begun(loc.File())
	return opened && Before(d, loc, begun, c.Deltas.Unit)
}

// inherit returns the files to which the snapshot refers besides its own, in a new slice; nil if it
// must write all dirty rows. REQUIRES: no bucket is written, and no row is pinned or released.
func (s *Snapshot) inherit(st rowcache.Stats) []catalog.Delta {
	base := s.c.lists.base
	if len(base) == 0 || len(Layers(base)) >= maxDeltas || st.Saved == 0 || DirtyRows(base)+st.Dirty-st.Saved > foldRows*st.Dirty {
		return nil
	}
	return slices.Clone(base)
}

// DirtyRows is the number of rows outside of buckets in the files, including outdated ones.
func DirtyRows(list []catalog.Delta) (rows int64) {
	for _, d := range list {
		rows += d.DirtyRows
	}
	return rows
}

// WithDirtyRows returns list without the files that have only clean rows.
func WithDirtyRows(list []catalog.Delta) (kept []catalog.Delta) {
	for _, d := range list {
		if d.DirtyRows > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// ForgetSaved clears Saved of the rows of a slot that stay dirty although the slot's bucket becomes
// another one. REQUIRES: the caller is the one that writes buckets.
func (c *Store) ForgetSaved(slot uint32, mask uint64) {
	c.Cache.ForEachOfSlot(uint64(slot), mask, func(rowcache.Entry) rowcache.Change {
		return rowcache.Change{Clear: Saved}
	})
}
