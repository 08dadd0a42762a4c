package ssd

import (
	"cmp"
	"context"
	"errors"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/lost"
	"aibox/sparsetable/internal/tabledirs"
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

// countStored sets the number of rows in buckets by reading all buckets. A bad sector costs only the bucket that
// contains it. If most of a directory's buckets cannot be read, its disk has failed, and countStored returns the error.
// REQUIRES: rewrite is held.
func (t *Table) countStored(ctx context.Context) error {
	counts := make([]bucketCount, len(t.dirs.Devices))
	for _, f := range t.files.LiveFiles() {
		c := &counts[f.Directory]
		whole := *c
		err := t.files.ScanFile(ctx, f.File, func(loc bucketfile.Location, b *bucketfile.Bucket) error {
			if t.index.LiesAt(b.Slot, uint64(loc)) {
				whole.add(b)
			}
			return nil
		})
		if err == nil {
			*c = whole
		} else if errors.Is(err, bucketfile.ErrCorrupt) || errors.Is(err, bucketfile.ErrUnreadable) {
			err = t.countOneByOne(ctx, f.File, c)
		}
		if err != nil {
			return err
		}
	}
	t.rewrite.stored = 0
	for _, c := range counts {
		if c.failed > c.read {
			return c.err
		}
		t.rewrite.stored += c.rows
	}
	return nil
}

// bucketCount counts buckets in a directory.
type bucketCount struct {
	rows, read int64
	failed     int64 // buckets that the disk does not read
	err        error // the first of them
}

func (c *bucketCount) add(b *bucketfile.Bucket) { c.rows, c.read = c.rows+int64(b.Len()), c.read+1 }

// manyFailed is how many more buckets of a directory must be unreadable than readable before countOneByOne gives up: on
// a failed disk, each attempt may take seconds.
const manyFailed = 16

// countOneByOne counts the rows in a file that is partly damaged or unreadable. REQUIRES: rewrite
// is held.
func (t *Table) countOneByOne(ctx context.Context, file uint32, c *bucketCount) error {
	var first error
	for slot, end := uint32(0), false; !end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, batch := slot, *c
		count := func(_ uint32, b *bucketfile.Bucket) error { batch.add(b); return nil }
		var err error
		if slot, end, err = t.bucketsIn(file, from, count); err != nil {
			batch = *c
		}
		for s := from; s < slot && err != nil; s++ { // each one by itself
			if bucketfile.Location(t.index.Location(s)).File() != file {
				continue
			}
			switch err := t.eachBucket([]uint32{s}, count); {
			case err == nil:
				continue
			case tabledirs.DiskFailed(err):
				batch.failed, batch.err = batch.failed+1, cmp.Or(batch.err, err)
				if batch.failed > batch.read+manyFailed {
					return batch.err
				}
			case !errors.Is(err, bucketfile.ErrCorrupt):
				return err
			}
			first = cmp.Or(first, err)
		}
		*c = batch
	}
	if first != nil {
		t.opts.Logger.Warn("sparsetable: a remaining bucket file is damaged or cannot be read in places, so the number of rows is not exact", "error", first)
	}
	return nil
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
