package lost

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/tabledirs"
)

// Loss is what a table lacks that was opened with sparsetable.SSDOptions.AllowLost.
type Loss struct {
	Dirs       []tabledirs.Lost
	Files      int   // of the snapshot, that are lost
	Slots      int64 // of the index, whose rows were lost
	TotalSlots int64 // that the snapshot had; Slots/TotalSlots is the portion 1/N of CPR, eq. 4
	Rows       int64 // lost
	TotalRows  int64 // that the snapshot had
}

// Files is what a table knows of the files that Open did not find. Its methods accept nil,
// which has lost nothing.
//
// A snapshot has the rows of a slot in the slot's bucket, and in delta files. Where the
// bucket is lost, so are its rows; rows in the delta files that are left are as they were
// in the snapshot, and stay. Where a delta file is lost, the rows that it had are lost, and
// it may have had those of any slot that it covers whose bucket was written before its
// instant. The versions in that bucket and in older delta files are outdated then; so they
// must not be used. A bucket or a row that was written later is not affected.
//
// Which slots a lost delta file covers is in checkpoint.Covers.
type Files struct {
	Loss
	slots  uint32   // of the table when it was opened
	gone   []uint64 // a bit for each of them: rows of its bucket were lost
	bare   []uint64 // a bit for each of them: it had no bucket
	deltas []delta
	files  map[uint32]bool         // lost bucket files
	list   []checkpoint.Layer      // of delta files with dirty rows, those that are left
	begun  map[uint32]catalog.File // of the snapshot as it was
	// since is, for each of the slots, the number of the oldest layer of delta files, among
	// those that are left, that has rows of the slot as they were in the snapshot. It is nil once
	// the table is open.
	since []uint8
}

// delta is a lost delta file with dirty rows.
type delta struct {
	catalog.Delta
	cover checkpoint.Cover
	newer uint8 // the number of the oldest layer that is left, of its instant or newer
}

func bitOf(bits []uint64, slot uint32) bool { return bits[slot/64]&(1<<(slot%64)) != 0 }
func setBit(bits []uint64, slot uint32)     { bits[slot/64] |= 1 << (slot % 64) }

// NoBucket reports whether the bucket that a hash's slot had was lost or is not used.
func (l *Files) NoBucket(hash uint64) bool {
	return l != nil && bitOf(l.gone, slots.SlotAmong(hash, l.slots))
}

// Row reports whether a row of that hash may have been lost.
func (l *Files) Row(hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if bitOf(l.gone, slot) {
		return true
	}
	return bitOf(l.bare, slot) && slices.ContainsFunc(l.deltas, func(d delta) bool { return d.cover.Hash(hash) })
}

// Valid reports whether a row in a delta file, of the layer of that number among those left,
// is not outdated.
func (l *Files) Valid(at int, hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if int(l.since[slot]) > at {
		return false
	}
	return !bitOf(l.bare, slot) || !slices.ContainsFunc(l.deltas, func(d delta) bool { return int(d.newer) > at && d.cover.Hash(hash) })
}

// Find tells which files of a snapshot are missing, of those that a table has in its
// directories. left is the snapshot without them. It returns nil where none is missing.
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

// Slots is how many slots the table had when it was opened.
func (l *Files) Slots() uint32 { return l.slots }

// NeedBytes is the memory that Begin takes. Opened gives SinceBytes of it back.
func (l *Files) NeedBytes() int64 { return 16*l.words() + l.SinceBytes() }

// SinceBytes is what is needed only while the table is opened.
func (l *Files) SinceBytes() int64 { return int64(l.slots) }

func (l *Files) words() int64 { return (int64(l.slots) + 63) / 64 }

// Begin is called before Look is.
func (l *Files) Begin() {
	l.gone, l.bare, l.since = make([]uint64, l.words()), make([]uint64, l.words()), make([]uint8, l.slots)
}

// Look looks at the bucket of a slot, in a table whose unit has that many bytes. gone says that
// the bucket is lost or must not be used.
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

// Opened is called once all rows are restored, of which the table then has so many.
func (l *Files) Opened(rows int64) {
	l.since, l.list, l.begun = nil, nil, nil
	l.Rows = max(0, l.TotalRows-rows)
}
