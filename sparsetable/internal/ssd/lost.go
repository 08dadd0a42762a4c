package ssd

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/lost"
)

// findLost looks for the files of a snapshot. If some are missing, it records them in t.lost and
// returns the snapshot without them.
func (t *Table) findLost(s catalog.Snapshot) (catalog.Snapshot, error) {
	have, err := t.dirs.FileNames()
	if err != nil {
		return s, err
	}
	var left catalog.Snapshot
	if t.lost, left = lost.Find(s, t.tableID, have); t.lost != nil {
		t.lost.Dirs = t.dirs.Lost
	}
	return left, nil
}

// takeOutLost removes lost buckets from the index, and buckets whose rows have newer versions in a
// lost delta file.
func (t *Table) takeOutLost(ctx context.Context) error {
	l := t.lost
	if l == nil {
		return nil
	}
	err := t.borrow(ctx, l.NeedBytes())
	if errors.Is(err, errNoVictims) {
		return t.overBudget("the list of lost slots", t.aLittleMore())
	}
	if err != nil {
		return err
	}
	l.Begin()
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	for slot := range l.Slots() {
		loc := bucketfile.Location(t.index.Location(slot))
		if !l.Look(slot, loc, t.unit) {
			continue
		}
		t.indexMu.Lock()
		t.index.Set(slot, 0)
		t.index.ResetFilter(slot)
		t.indexMu.Unlock()
		if !l.File(loc.File()) {
			if err := t.files.Release(loc); err != nil {
				return err
			}
		}
	}
	return t.countStored(ctx)
}

// countStored sets the number of rows in buckets by reading all buckets. REQUIRES: rewrite is held.
func (t *Table) countStored(ctx context.Context) error {
	t.rewrite.stored = 0
	for _, f := range t.files.LiveFiles() {
		rows := int64(0)
		err := t.files.ScanFile(ctx, f.File, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
			if t.index.LiesAt(b.Slot, uint64(loc)) {
				rows += int64(b.Len())
			}
			return nil
		})
		if errors.Is(err, bucketfile.ErrCorrupt) || errors.Is(err, bucketfile.ErrUnreadable) {
			rows, err = t.countOneByOne(ctx, f.File)
		}
		if err != nil {
			return err
		}
		t.rewrite.stored += rows
	}
	return nil
}

// countOneByOne counts the rows in a file that is partly damaged or unreadable. REQUIRES: rewrite
// is held.
func (t *Table) countOneByOne(ctx context.Context, file uint32) (rows int64, err error) {
	for slot, end := uint32(0), false; !end; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		slot, end, err = t.bucketsIn(file, slot, func(_ uint32, b *bucketfile.Bucket) error {
			rows += int64(b.Len())
			return nil
		})
		if errors.Is(err, bucketfile.ErrCorrupt) {
			t.opts.Logger.Warn("sparsetable: a remaining bucket file is damaged, so the number of rows is not exact", "error", err)
		} else if err != nil {
			return 0, err
		}
	}
	return rows, nil
}

// reportLost completes the opening of a table that has lost files. The next snapshot refers to no
// earlier delta file: such files have old versions of rows whose newer versions were in lost
// buckets.
func (t *Table) reportLost() {
	l := t.lost
	if l == nil {
		if len(t.dirs.Lost) > 0 {
			t.opts.Logger.Warn("sparsetable: directories of the table are unusable or empty, but they held nothing of the snapshot", "dirs", t.dirs.Lost)
		}
		return
	}
	t.checkpoints.Restart()
	t.giveBack(l.SinceBytes())
	c := t.cache.Stats()
	l.Opened(t.rewrite.stored + c.Rows - c.Marked2)
	log := t.opts.Logger
	if len(l.Dirs) > 0 { // otherwise only files are lost
		log = log.With("dirs", l.Dirs)
	}
	log.Warn("sparsetable: files of the table are lost; the table continues without their rows", "files", l.Loss.Files,
		"slots", l.Loss.Slots, "of_slots", l.TotalSlots, "rows", l.Rows, "of_rows", l.TotalRows)
}
