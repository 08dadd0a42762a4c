package checkpoint

import (
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/invariants"
	"aibox/sparsetable/internal/slots"
)

// Each of a table's directories is a failure domain: the loss of one costs the rows of the
// buckets there, and no others. So a snapshot writes one delta file into each, with the rows
// of the slots whose buckets are there; of slots without a bucket, the hash of a row says
// which file has it. Its record has the number of directories, and of each file the number
// of the directory for which it was written. The file may be in another one since, in a copy
// of the table. Then the next snapshot refers to no earlier file (inPlace), so that what a
// record says of its files always comes from one division of the table.

// Cover says of which slots a delta file may have rows: it covers those whose bucket lies
// in certain bucket files, and of the slots without a bucket the rows with certain hashes.
type Cover struct {
	dir  uint16
	dirs uint32 // 0, in records of older versions, or 1: all
}

// Covers is what a delta file of a snapshot covers.
func Covers(s catalog.Snapshot, d catalog.Delta) Cover {
	return Cover{dir: d.Dir, dirs: uint32(s.Counters[counterDirs])}
}

// File reports whether slots are covered whose bucket lies in a file.
func (c Cover) File(f catalog.File) bool { return c.dirs <= 1 || f.Dir == c.dir }

// Hash reports whether rows of that hash are covered if their slot has no bucket.
func (c Cover) Hash(hash uint64) bool { return c.dirs <= 1 || dirOfHash(hash, c.dirs) == c.dir }

// dirOfHash is which of the directories has the rows of a hash whose slot has no bucket.
func dirOfHash(hash uint64, dirs uint32) uint16 { return uint16(uint32(hash>>32) % dirs) }

// domains says in which directory a snapshot puts the delta rows of a slot, at the instant
// at which it is fixed.
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

// of is the directory for a row of that hash and kind. If it is dirty, it is yet to be saved,
// so its slot's bucket is where it was when the snapshot was fixed. A clean row may be in
// another bucket since; it does not matter in which file that is. REQUIRES: IndexMu is held
// for reading.
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
// written, and there are as many of these as there were.
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

// Layer is the delta files of one instant, at most one for each directory. No two of them
// have the same key.
type Layer []catalog.Delta

// Layers divides a list of delta files, oldest first.
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

// Newest is the files of the last instant of a list.
func Newest(list []catalog.Delta) Layer {
	if len(list) == 0 {
		return nil
	}
	layers := Layers(list)
	return layers[len(layers)-1]
}

// Instant is one of the files, to which the instant of all of them can be compared.
func (l Layer) Instant() *catalog.Delta { return &l[0] }

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
