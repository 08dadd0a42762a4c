package sparsetable

import (
	"log/slog"
	"math"

	"aibox/sparsetable/internal/rowcache"
)

const (
	// deltaClasses is the number of classes of frequency in which the rows of a
	// delta file are ordered. Each class costs a pass over the 16 bytes of metadata
	// that the cache has for each row. When only a part of the file is restored,
	// into a smaller cache for example, the choice of the rows used most is exact
	// to an eighth of the rows.
	deltaClasses = 8
	// The rows are not ordered where deltaFewBlocks blocks hold all of them.
	deltaFewBlocks = 4

	// hotShare and maxHotBytes determine the default of SSDOptions.HotBytes. A
	// quarter of the budget holds most of the hot clean rows, because the rows in
	// use are mostly dirty and are saved anyway. maxHotBytes is what a device
	// writes in about a second.
	hotShare    = 4
	maxHotBytes = 1 << 30
)

// saveOwed saves all rows that are yet to be saved, those used most first.
func (d *snapshotDelta) saveOwed(canceled func() error) error {
	p := rowcache.Pick{Has: rowOwed}
	if d.inherits {
		p.Lacks = rowSaved
	}
	few := int64(deltaFewBlocks) * int64(deltaBlockBytes(d.t.layout)) / int64(deltaEntryBytes+d.t.layout.Bytes())
	if d.t.cache.Owed() > few {
		h := d.t.cache.Histogram(p)
		for uses := range h.Classes(h.Rows(), deltaClasses) {
			p.MinUses = uses
			if _, err := d.collect(p, math.MaxInt64, d.takeOwedLocked, canceled); err != nil {
				return err
			}
		}
	}
	p.MinUses, p.Lacks = 0, 0 // the rows of inherited files are only counted
	// Rows may move while the cache shrinks, so one pass may miss some.
	for d.t.cache.Owed() > 0 {
		if _, err := d.collect(p, math.MaxInt64, d.takeOwedLocked, canceled); err != nil {
			return err
		}
	}
	return nil
}

// saveClean adds clean rows: of those that were clean when the snapshot was fixed
// and have not changed since, the ones used most. They are in buckets, too. They
// are saved only so that a restart finds them in memory, so none are saved on a
// disk that is nearly full.
func (d *snapshotDelta) saveClean(canceled func() error) error {
	p := rowcache.Pick{Has: rowcache.Old | rowStored, Lacks: rowcache.Dirty, Idle: true}
	left := max(0, min(d.t.opts.SSD.HotBytes, d.bytesToSpare())) / int64(deltaEntryBytes+d.t.layout.Bytes())
	if left > 0 {
		h := d.t.cache.Histogram(p)
		left = min(left, h.Rows())
		if left > 0 && !d.claimClean(left) {
			left = 0
		}
		d.endDirty(left > 0)
		for uses := range h.Classes(left, deltaClasses) {
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
	d.t.forgetOld()
	return nil
}

// hotReserveBytes is how much of a disk the clean rows leave free: for the rest of
// the snapshot, and for later buckets and snapshots.
const hotReserveBytes = 256 << 20

// bytesToSpare is how many bytes the clean rows may take: what the file system has
// left, less hotReserveBytes and less what may not have been written yet. With a
// budget for the directory it is at most what the budget has left, less the amount
// that makes compaction urgent and less what the dirty rows take, so that the next
// snapshot has room for its own.
func (d *snapshotDelta) bytesToSpare() int64 {
	if d.t.opts.SSD.HotBytes <= 0 {
		return 0
	}
	free, err := d.t.devices[0].Free()
	if err != nil {
		d.t.log.Warn("sparsetable: the free space of a disk is unknown, so the snapshot leaves out the clean rows used most", slog.Any("error", err))
		return 0
	}
	d.mu.Lock()
	bytes := d.bytes
	d.mu.Unlock()
	spare := free - bytes - hotReserveBytes
	if _, each := d.t.files.Space(); each[0].BudgetBytes > 0 {
		sp := &each[0]
		keep := fullFiles*d.t.files.UrgentBytes() + d.claimed
		spare = min(spare, sp.BudgetBytes-sp.TotalBytes-sp.OtherBytes-keep)
	}
	return spare
}

// forgetOld makes all rows not old, as the next snapshot requires. REQUIRES: all
// dirty rows are saved, or the snapshot is abandoned.
func (t *ssd) forgetOld() {
	for {
		for at, end := uint32(0), false; !end; {
			at, end = t.cache.VisitFrom(at, rowcache.Pick{Has: rowcache.Old}, math.MaxInt, func(rowcache.Entry) rowcache.Change {
				return rowcache.Change{Clear: rowcache.Old}
			})
		}
		if t.cache.Owed() == 0 {
			return
		}
	}
}
