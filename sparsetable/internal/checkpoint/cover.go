package checkpoint

import (
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/slots"
)

// Each directory of a table is a failure domain: the loss of one costs only the rows of the buckets
// there. So a snapshot writes one delta file into each directory, with the rows of the slots whose
// buckets are there; for slots without a bucket, the hash of a row determines the file. The
// snapshot's record has the number of directories, and for each file the number of the directory
// for which it was written. In a copy of the table, the file may now be in another directory. Then
// the next snapshot refers to no earlier file (inPlace), so that a record always describes files of
// a single division of the table.

// Cover says which slots a delta file may have rows of: it covers slots whose bucket lies in
// certain bucket files, and rows with certain hashes of slots without a bucket.
type Cover struct {
	dir  uint16
	dirs uint32 // 0, in records of older versions, or 1: all
}

// Covers returns what a delta file of a snapshot covers.
func Covers(s catalog.Snapshot, d catalog.Delta) Cover {
	return Cover{dir: d.Dir, dirs: uint32(s.Counters[counterDirs])}
}

// File reports whether slots whose bucket lies in f are covered.
func (c Cover) File(f catalog.File) bool { return c.dirs <= 1 || f.Dir == c.dir }

// Hash reports whether rows with that hash are covered if their slot has no bucket.
func (c Cover) Hash(hash uint64) bool { return c.dirs <= 1 || dirOfHash(hash, c.dirs) == c.dir }

// dirOfHash is the directory for rows with a hash whose slot has no bucket.
func dirOfHash(hash uint64, dirs uint32) uint16 { return uint16(uint32(hash>>32) % dirs) }

// domains determines the directory of the delta rows of each slot, at the instant at which a
// snapshot is fixed.
type domains struct {
	index *slots.Index
	dirs  uint32
	files map[uint32]uint16 // the directories of the bucket files
}

func (c *Store) domains(state bucketfile.State) *domains {
	d := &domains{index: c.Index, dirs: uint32(len(c.Deltas.Devices)), files: make(map[uint32]uint16, len(state.Files))}
	for _, f := range state.Files {
		d.files[f.File] = f.Dir
	}
	return d
}

// of is the directory for a row with that hash and kind. A dirty row is yet to be saved, so its
// slot's bucket is where it was when the snapshot was fixed. The bucket of a clean row may have
// been rewritten elsewhere since; any file will do for it. REQUIRES: IndexMu is held for reading.
func (d *domains) of(hash uint64, kind deltafile.Kind) uint16 {
	if loc := bucketfile.Location(d.index.Location(d.index.Slot(hash))); loc != 0 {
		dir, known := d.files[loc.File()]
		if known {
			return dir
		}
		if invariants.Enabled && kind == deltafile.Dirty {
			panic(fmt.Sprintf("checkpoint: the bucket at %v was written before a row of its slot was saved", loc))
		}
	}
	return dirOfHash(hash, d.dirs)
}

// inPlace reports whether the files of a snapshot are in the directories for which they were
// written, and the number of directories is still the same.
func (c *Store) inPlace(s catalog.Snapshot) bool {
	dirs := len(c.Deltas.Devices)
	if dirs == 1 || s.ID == 0 {
		return true
	}
	if s.Counters[counterDirs] != int64(dirs) {
		return false
	}
	for _, f := range s.Files {
		if dir, known := c.files.DirOf(f.ID); !known || dir != f.Dir {
			return false
		}
	}
	for _, d := range s.Deltas {
		if c.lists.files[d.Name].dir != int(d.Dir) {
			return false
		}
	}
	return true
}

// Layer is the delta files of one instant, at most one per directory. Their keys are distinct.
type Layer []catalog.Delta

// Layers divides a list of delta files, oldest first, into layers.
func Layers(list []catalog.Delta) (layers []Layer) {
	for i := range list {
		if i > 0 && deltafile.SameInstant(list[i-1].Name, list[i].Name) {
			at := len(layers) - 1
			layers[at] = layers[at][:len(layers[at])+1]
		} else {
			layers = append(layers, Layer(list[i:i+1]))
		}
	}
	return layers
}

// Newest returns the last layer of a list.
func Newest(list []catalog.Delta) Layer {
	if len(list) == 0 {
		return nil
	}
	layers := Layers(list)
	return layers[len(layers)-1]
}

// Instant returns one of the files, which represents the instant of all of them.
func (l Layer) Instant() *catalog.Delta { return &l[0] }

// Before reports whether the bucket at loc, in a file that was begun at Seq begun, was written
// before the instant of the delta file d; unit is the size of the table's units.
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
