package sparsetable

import (
	"context"
	"errors"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/slots"
)

// lost is what a table knows of the files that Open did not find. Its methods accept nil,
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
type lost struct {
	Loss
	slots  uint32   // of the table when it was opened
	gone   []uint64 // a bit for each of them: rows of its bucket were lost
	bare   []uint64 // a bit for each of them: it had no bucket
	deltas []lostDelta
	files  map[uint32]bool // lost bucket files
	// since is, for each of the slots, the number of the oldest layer of delta files, among
	// those that are left, that has rows of the slot as they were in the snapshot. It is nil once
	// the table is open.
	since []uint8
}

// lostDelta is a lost delta file with dirty rows.
type lostDelta struct {
	catalog.Delta
	cover checkpoint.Cover
	newer uint8 // the number of the oldest layer that is left, of its instant or newer
}

func bitOf(bits []uint64, slot uint32) bool { return bits[slot/64]&(1<<(slot%64)) != 0 }
func setBit(bits []uint64, slot uint32)     { bits[slot/64] |= 1 << (slot % 64) }

// noBucket reports whether the bucket that a hash's slot had was lost or is not used.
func (l *lost) noBucket(hash uint64) bool {
	return l != nil && bitOf(l.gone, slots.SlotAmong(hash, l.slots))
}

// row reports whether a row of that hash may have been lost.
func (l *lost) row(hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if bitOf(l.gone, slot) {
		return true
	}
	return bitOf(l.bare, slot) && slices.ContainsFunc(l.deltas, func(d lostDelta) bool { return d.cover.Hash(hash) })
}

// valid reports whether a row in a delta file, of the layer of that number among those left,
// is not outdated.
func (l *lost) valid(at int, hash uint64) bool {
	slot := slots.SlotAmong(hash, l.slots)
	if int(l.since[slot]) > at {
		return false
	}
	return !bitOf(l.bare, slot) || !slices.ContainsFunc(l.deltas, func(d lostDelta) bool { return int(d.newer) > at && d.cover.Hash(hash) })
}

// findLost looks for the files of a snapshot. Where some are missing, it notes them in
// t.lost and returns the snapshot without them.
func (t *ssd) findLost(s catalog.Snapshot) (catalog.Snapshot, error) {
	have, err := t.dirs.FileNames()
	if err != nil {
		return s, err
	}
	l := &lost{slots: s.Slots, files: map[uint32]bool{}}
	left := s
	left.Files, left.Deltas = nil, nil
	for _, f := range s.Files {
		if have[bucketfile.FileName(t.tableID, f.ID, f.Incarnation)] {
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
				l.deltas = append(l.deltas, lostDelta{Delta: d, cover: checkpoint.Covers(s, d), newer: newer})
			}
			l.Files++
		}
	}
	if l.Files == 0 {
		return s, nil
	}
	l.Dirs, l.TotalSlots, l.TotalRows = t.dirs.Lost, int64(s.Slots), s.Rows
	t.lost = l
	return left, nil
}

// takeOutLost takes the lost buckets out of the index, and those whose rows have newer
// versions in a lost delta file. s is the snapshot as it was, left what is left of it.
func (t *ssd) takeOutLost(ctx context.Context, s, left catalog.Snapshot) error {
	l := t.lost
	if l == nil {
		return nil
	}
	words := (int64(l.slots) + 63) / 64
	err := t.borrow(ctx, 16*words+int64(l.slots))
	if errors.Is(err, errNoVictims) {
		return t.overBudget("the list of lost slots", t.aLittleMore())
	}
	if err != nil {
		return err
	}
	l.gone, l.bare, l.since = make([]uint64, words), make([]uint64, words), make([]uint8, l.slots)
	list := checkpoint.Layers(checkpoint.WithDirtyRows(left.Deltas))
	files := map[uint32]catalog.File{}
	for _, f := range s.Files {
		files[f.ID] = f
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	for slot := range l.slots {
		loc := bucketfile.Location(t.index.Location(slot))
		if loc == 0 {
			setBit(l.bare, slot)
			continue
		}
		file := files[loc.File()]
		before := func(d *catalog.Delta) bool { return checkpoint.Before(d, loc, file.Begun, t.unit) }
		at := 0
		for at < len(list) && !before(list[at].Instant()) {
			at++
		}
		gone := l.files[loc.File()]
		for i := range l.deltas {
			if d := &l.deltas[i]; d.cover.File(file) && before(&d.Delta) {
				gone, at = true, max(at, int(d.newer))
			}
		}
		l.since[slot] = uint8(at)
		if !gone {
			continue
		}
		setBit(l.gone, slot)
		l.Slots++
		t.indexMu.Lock()
		t.index.Set(slot, 0)
		t.index.ResetFilter(slot)
		t.indexMu.Unlock()
		if !l.files[loc.File()] {
			if err := t.files.Release(loc); err != nil {
				return err
			}
		}
	}
	return t.countStored(ctx)
}

// countStored counts the rows in buckets, which it reads. REQUIRES: rewrite is held.
func (t *ssd) countStored(ctx context.Context) error {
	rows := int64(0)
	for _, f := range t.files.LiveFiles() {
		err := t.files.ScanFile(ctx, f.File, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
			if b.Slot < t.index.Slots() && bucketfile.Location(t.index.Location(b.Slot)) == loc {
				rows += int64(b.Len())
			}
			return nil
		})
		if errors.Is(err, bucketfile.ErrCorrupt) {
			t.opts.Logger.Warn("sparsetable: a bucket file that is left is damaged; the number of rows is not exact", "error", err)
		} else if err != nil {
			return err
		}
	}
	t.rewrite.stored = rows
	return nil
}

// reportLost ends the opening of a table that has lost files. The next snapshot refers to
// no earlier delta file, because these have rows that are outdated by lost buckets.
func (t *ssd) reportLost() {
	l := t.lost
	if l == nil {
		if len(t.dirs.Lost) > 0 {
			t.opts.Logger.Warn("sparsetable: directories of the table cannot be used, or are empty, but nothing of the snapshot was in them", "dirs", t.dirs.Lost)
		}
		return
	}
	t.checkpoints.Restart()
	l.since = nil
	t.giveBack(int64(l.slots))
	c := t.cache.Stats()
	l.Rows = max(0, l.TotalRows-(t.rewrite.stored+c.Rows-c.Marked2))
	t.opts.Logger.Warn("sparsetable: files of the table are lost; it goes on without their rows", "dirs", l.Dirs, "files", l.Files,
		"slots", l.Slots, "of_slots", l.TotalSlots, "rows", l.Rows, "of_rows", l.TotalRows)
}

// restoreLeft loads the dirty rows of the delta files that are left.
func (t *ssd) restoreLeft(ctx context.Context, left catalog.Snapshot) error {
	list := checkpoint.Layers(checkpoint.WithDirtyRows(left.Deltas))
	if len(list) == 0 {
		return nil
	}
	r := listRestore{t: t, list: list}
	return r.restore(ctx, hashRange{})
}
