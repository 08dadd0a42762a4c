package checkpoint

import (
	"log/slog"
	"math"

	"aibox/sparsetable/internal/rowcache"
)

const (
	// useClasses is the number of classes of frequency in which the rows of a delta file are
	// ordered. Each class costs a pass over the cache's metadata, 16 bytes per row. If only a part
	// of the file is restored, for example into a smaller cache, the choice of the most used rows
	// is exact to an eighth of the rows.
	useClasses = 8
	// The rows are not ordered if fewBlocks blocks hold all of them.
	fewBlocks = 4
)

// saveDirty saves all rows that are yet to be saved, the most used first.
func (d *Dump) saveDirty(canceled func() error) error {
	p := rowcache.Pick{Has: unsaved}
	if d.inherits {
		p.Lacks = Saved
	}
	few := fewBlocks * int64(d.c.Deltas.BlockBytes()) / int64(d.c.Deltas.EntrySize())
	if d.c.Cache.Unsaved() > few {
		h := d.c.Cache.Histogram(p)
		for uses := range h.Classes(h.Rows(), useClasses) {
			p.MinUses = uses
			if _, err := d.collect(p, math.MaxInt64, d.takeUnsavedLocked, canceled); err != nil {
				return err
			}
		}
	}
	p.MinUses, p.Lacks = 0, 0 // the rows of inherited files are only counted
	// Rows may move while the cache shrinks, so one pass may miss some.
	for d.c.Cache.Unsaved() > 0 {
		if _, err := d.collect(p, math.MaxInt64, d.takeUnsavedLocked, canceled); err != nil {
			return err
		}
	}
	return nil
}

// saveClean adds the most used of the rows that were clean when the snapshot was fixed and have not
// changed since. They are also in buckets, and are saved only so that a restart finds them in
// memory. So none are saved on a nearly full disk, and none during training: the next snapshot
// follows soon, and most rows that training uses are dirty.
func (d *Dump) saveClean(canceled func() error) error {
	p := rowcache.Pick{Has: rowcache.Old | Stored, Lacks: rowcache.Dirty, Idle: true}
	left := int64(0)
	if !d.training {
		left = max(0, min(d.c.HotBytes, d.bytesToSpare())) / int64(d.c.Deltas.EntrySize())
	}
	if left > 0 {
		h := d.c.Cache.Histogram(p)
		left = min(left, h.Rows())
		if left > 0 && !d.reserveClean(left) {
			left = 0
		}
		d.endDirty(left > 0)
		for uses := range h.Classes(left, useClasses) {
			p.MinUses = uses
			n, err := d.collect(p, left, func(e rowcache.Entry) rowcache.Change {
				d.takeLocked(e)
				return rowcache.Change{Clear: rowcache.Old}
			}, canceled)
			if err != nil {
				return err
			}
			left -= n
		}
	} else {
		d.endDirty(false)
	}
	d.c.forgetOld()
	return nil
}

// hotReserveBytes is the disk space that the clean rows leave free for the rest of the snapshot,
// and for later buckets and snapshots.
const hotReserveBytes = 256 << 20

// bytesToSpare is how many bytes the clean rows may take. For each directory that is the free space
// of the file system, less hotReserveBytes and less what may not have been written yet. With a
// budget for the directory, it is also at most the rest of the budget, less the amount that makes
// compaction urgent and less what the dirty rows take. So the next snapshot has room for its dirty
// rows. All directories get the amount of the fullest one.
func (d *Dump) bytesToSpare() int64 {
	if d.c.HotBytes <= 0 {
		return 0
	}
	least := int64(math.MaxInt64)
	_, each := d.c.files.Space()
	for i, p := range d.parts {
		free, err := d.c.Deltas.Devices[p.dir].Free()
		if err != nil {
			d.c.Logger.Warn("sparsetable: the free space of a disk is unknown, so the snapshot leaves out the most used clean rows", slog.Any("error", err))
			return 0
		}
		d.mu.Lock()
		bytes := p.bytes
		d.mu.Unlock()
		least = min(least, free-bytes-hotReserveBytes)
		if sp := &each[i]; sp.BudgetBytes > 0 {
			keep := d.c.FullFiles*d.c.files.UrgentBytes() + p.reserved
			least = min(least, sp.BudgetBytes-sp.TotalBytes-sp.OtherBytes-keep)
		}
	}
	return min(least, d.c.HotBytes) * int64(len(d.parts))
}

// forgetOld makes all rows not old, as the next snapshot requires. REQUIRES: all dirty rows are
// saved, or the snapshot is abandoned.
func (c *Store) forgetOld() {
	for {
		for at, end := uint32(0), false; !end; {
			at, end = c.Cache.VisitFrom(at, rowcache.Pick{Has: rowcache.Old}, math.MaxInt, func(rowcache.Entry) rowcache.Change {
				return rowcache.Change{Clear: rowcache.Old}
			})
		}
		if c.Cache.Unsaved() == 0 {
			return
		}
	}
}
