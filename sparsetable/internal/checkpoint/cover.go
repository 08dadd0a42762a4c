package checkpoint

import (
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
)

// Cover says of which slots a delta file may have rows: it covers those whose bucket lies
// in certain bucket files, and of the slots without a bucket the rows with certain hashes.
type Cover struct {
	dir  uint16
	dirs uint32 // 0 or 1: all
}

// Covers is what a delta file of a snapshot covers.
func Covers(_ catalog.Snapshot, d catalog.Delta) Cover { return Cover{dir: d.Dir, dirs: 1} }

// File reports whether slots are covered whose bucket lies in a file.
func (c Cover) File(f catalog.File) bool { return c.dirs <= 1 || f.Dir == c.dir }

// Hash reports whether rows of that hash are covered if their slot has no bucket.
func (c Cover) Hash(hash uint64) bool { return c.dirs <= 1 || dirOfHash(hash, c.dirs) == c.dir }

// dirOfHash is which of the directories has the rows of a hash whose slot has no bucket.
func dirOfHash(hash uint64, dirs uint32) uint16 { return uint16(uint32(hash>>32) % dirs) }

// Before reports whether the bucket at a location, in a file that was begun at a Seq, was
// written before the instant of a delta file; unit is the size of the table's units.
func Before(d *catalog.Delta, loc bucketfile.Location, begun uint64, unit int) bool {
	if begun >= d.Seq {
		return false
	}
	for _, f := range d.Growing {
		if f.File == loc.File() {
			return loc.Offset()*int64(unit) < f.Bytes
		}
	}
	return true
}
