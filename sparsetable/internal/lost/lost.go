package lost

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/tabledirs"
)

// Loss is what a table that was opened with sparsetable.SSDOptions.AllowLost lacks.
type Loss struct {
	Dirs       []tabledirs.Lost
	Files      int   // lost files of the snapshot
	Slots      int64 // slots of the index whose rows were lost
	TotalSlots int64 // slots of the snapshot; Slots/TotalSlots is the portion 1/N of CPR, eq. 4
	Rows       int64 // lost
	TotalRows  int64 // that the snapshot had
}

// Files knows which files Open did not find. Its methods accept nil, which has lost nothing.
//
// A snapshot has the rows of a slot in the slot's bucket and in delta files. If the bucket is lost,
// so are its rows; rows in the remaining delta files are as they were in the snapshot, and stay. If
// a delta file is lost, its rows are lost. It may have had rows of any slot that it covers whose
// bucket was written before the file's instant. The versions in that bucket and in older delta
// files are then outdated and must not be used. A bucket or a row that was written later is not
// affected.
//
// checkpoint.Covers tells which slots a lost delta file covers.
type Files struct {
	Loss
	slots  uint32   // of the table when it was opened
	gone   []uint64 // a bit for each slot: rows of its bucket were lost
	bare   []uint64 // a bit for each slot: it had no bucket
	deltas []delta
	files  map[uint32]bool         // lost bucket files
	list   []checkpoint.Layer      // remaining delta files with dirty rows
	begun  map[uint32]catalog.File // bucket files of the complete snapshot
	// since[slot] is the number of the oldest remaining layer of delta files that has rows of the
	// slot as they were in the snapshot. It is nil once the table is open.
	since []uint8
}

// delta is a lost delta file with dirty rows.
type delta struct {
	catalog.Delta
	cover checkpoint.Cover
	newer uint8 // the number of the oldest remaining layer of its instant or newer
}

func bitOf(bits []uint64, slot uint32) bool { return bits[slot/64]&(1<<(slot%64)) != 0 }
func setBit(bits []uint64, slot uint32)     { bits[slot/64] |= 1 << (slot % 64) }

// NoBucket reports whether the bucket of a hash's slot was lost or must not be used.
func (l *Files) NoBucket(hash uint64) bool {
	return l != nil && bitOf(l.gone, slots.SlotAmong(hash, l.slots))
}

// Row reports whether a row with that hash may have been lost.
func (l *Files) Row(hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if bitOf(l.gone, slot) {
		return true
	}
	return bitOf(l.bare, slot) && slices.ContainsFunc(l.deltas, func(d delta) bool { return d.cover.Hash(hash) })
}

// Valid reports whether a row in a delta file of the remaining layer number at is not outdated.
func (l *Files) Valid(at int, hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if int(l.since[slot]) > at {
		return false
	}
	return !bitOf(l.bare, slot) || !slices.ContainsFunc(l.deltas, func(d delta) bool { return int(d.newer) > at && d.cover.Hash(hash) })
}

// Find returns which files of a snapshot are missing from have, the files in the table's
// directories. left is the snapshot without the missing files. l is nil if none is missing.
func Find(s catalog.Snapshot, table uint64, have map[string]bool) (l *Files, left catalog.Snapshot) {
	l = &Files{slots: s.Slots, files: map[uint32]bool{}, begun: map[uint32]catalog.File{}}
	left = s
	left.Files, left.Deltas = nil, nil
	for _, f := range s.Files {
		l.begun[f.ID] = f
		if have[bucketfile.FileName(table, f.ID, f.Incarnation)] {
			left.Files = append(left.Files, f)
		} else {
			l.files[f.ID] = true
			l.Files++
		}
	}
	for _, layer := range checkpoint.Layers(s.Deltas) {
		newer := uint8(len(checkpoint.Layers(checkpoint.WithDirtyRows(left.Deltas))))
		for _, d := range layer {
			switch {
			case have[d.Name]:
				left.Deltas = append(left.Deltas, d)
				continue
			case d.DirtyRows > 0:
				l.deltas = append(l.deltas, delta{Delta: d, cover: checkpoint.Covers(s, d), newer: newer})
			}
			l.Files++
		}
	}
	if l.Files == 0 {
		return nil, s
	}
	l.TotalSlots, l.TotalRows = int64(s.Slots), s.Rows
	l.list = checkpoint.Layers(checkpoint.WithDirtyRows(left.Deltas))
	return l, left
}

// Slots is the number of slots when the table was opened.
func (l *Files) Slots() uint32 { return l.slots }

// NeedBytes is the memory that Begin takes. Opened frees SinceBytes of it.
func (l *Files) NeedBytes() int64 { return 16*l.words() + l.SinceBytes() }

// SinceBytes is the memory that is needed only while the table is being opened.
func (l *Files) SinceBytes() int64 { return int64(l.slots) }

func (l *Files) words() int64 { return (int64(l.slots) + 63) / 64 }

// Begin must be called before Look.
func (l *Files) Begin() {
	l.gone, l.bare, l.since = make([]uint64, l.words()), make([]uint64, l.words()), make([]uint8, l.slots)
}

// Look examines the bucket of a slot, in a table whose unit has that many bytes. gone says that the
// bucket is lost or must not be used.
func (l *Files) Look(slot uint32, loc bucketfile.Location, unit int) (gone bool) {
	if loc == 0 {
		setBit(l.bare, slot)
		return false
	}
	file := l.begun[loc.File()]
	before := func(d *catalog.Delta) bool { return checkpoint.Before(d, loc, file.Begun, unit) }
	at := 0
	for at < len(l.list) && !before(l.list[at].Instant()) {
		at++
	}
	gone = l.File(loc.File())
	for i := range l.deltas {
		if d := &l.deltas[i]; d.cover.File(file) && before(&d.Delta) {
			gone, at = true, max(at, int(d.newer))
		}
	}
	l.since[slot] = uint8(at)
	if gone {
		setBit(l.gone, slot)
		l.Loss.Slots++
	}
	return gone
}

// File reports whether a bucket file is lost.
func (l *Files) File(number uint32) bool { return l.files[number] }

// Opened is called once all rows are restored; rows is the number of rows in the table then.
func (l *Files) Opened(rows int64) {
	l.since, l.list, l.begun = nil, nil, nil
	l.Rows = max(0, l.TotalRows-rows)
}
