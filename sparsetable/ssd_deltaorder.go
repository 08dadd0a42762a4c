package sparsetable

import (
	"log/slog"
	"math"

	"aibox/sparsetable/internal/rowcache"
)

const (
	// deltaClasses is how many classes of frequency the rows of a delta file
	// come in. Each costs a pass over the cache's 16 bytes a row; what is
	// restored into a smaller cache, or not to its end, is right to an eighth.
	deltaClasses = 8
	// deltaFewBlocks that hold all rows need no order.
	deltaFewBlocks = 4

	// hotShare and maxHotBytes bound by default what clean rows take: a part of
	// the budget that still is most of a hot set, as the rows in use are mostly
	// dirty and come anyway; and what a device writes in about a second.
	hotShare    = 4
	maxHotBytes = 1 << 30
)

// saveOwed saves all rows that are to be saved, those used most first.
func (d *snapshotDelta) saveOwed(canceled func() error) error {
	p := rowcache.Pick{Has: rowOwed}
	few := int64(deltaFewBlocks) * int64(deltaBlockBytes(d.t.layout)) / int64(deltaEntryBytes+d.t.layout.Bytes())
	if owed := d.t.cache.Owed(); owed > few {
		h := d.t.cache.Histogram(p)
		for uses := range h.Classes(owed, deltaClasses) {
			p.MinUses = uses
			if _, err := d.collect(p, math.MaxInt64, d.takeOwedLocked, canceled); err != nil {
				return err
			}
		}
	}
	p.MinUses = 0
	// Rows may move while the cache shrinks, so one pass may miss some.
	for d.t.cache.Owed() > 0 {
		if _, err := d.collect(p, math.MaxInt64, d.takeOwedLocked, canceled); err != nil {
			return err
		}
	}
	return nil
}

// saveClean adds the rows used most of those that were clean when the snapshot
// was fixed and have not changed since; they are in buckets. They are worth
// saving only for a restart to find them in memory: not on a disk that is nearly
// full.
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

// hotReserveBytes is what rows that need not be saved leave free of a disk: for
// the rest of the snapshot, and for the buckets and the snapshots to come.
const hotReserveBytes = 256 << 20

// bytesToSpare is what the file system has left, less hotReserveBytes and what may
// be on its way there; of a budget, what is beyond that which makes compaction
// urgent, and beyond as many rows again for the next snapshot.
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

// forgetOld makes no row old, so that the next snapshot knows them all. What is
// owed is saved by then, or the snapshot abandoned.
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
