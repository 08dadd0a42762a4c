package ssd

import (
	"context"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/scan"
)

// Scan implements Table. Pulls wait until it ends.
func (t *Table) Scan(ctx context.Context, fn func(key uint64, row []float32) error) error {
	if err := t.inFlight.Begin(); err != nil {
		return err
	}
	defer t.inFlight.End()
	if err := t.changing.Acquire(ctx); err != nil {
		return err
	}
	defer t.changing.Release()
	n, end, err := t.beginScan()
	if err != nil {
		return apierr.Of(err)
	}
	defer end()
	o := scan.Options{
		Table: scanned{t}, Files: t.files, Index: t.index, Outside: t.outside, Checkpoints: t.checkpoints, Slots: n, Words: t.layout.Words(),
	}
	bytes := scan.SeenBytes(n)
	switch err := t.borrow(ctx, bytes); {
	case err == nil:
		defer t.giveBack(bytes)
		o.Seen = make([]uint64, bytes/8)
	case !cannotShrink(err):
		return apierr.Of(err)
	}
	return scan.Rows(ctx, o, fn)
}

// scanned is a scan's view of the table; it implements scan.Table.
type scanned struct{ *Table }

// Lock implements scan.Table.
func (t scanned) Lock() { t.rewrite.Lock() }

// Unlock implements scan.Table.
func (t scanned) Unlock() { t.rewrite.Unlock() }

// EachCached implements scan.Table. In a table that is opened for reading only, the cache has no
// newer versions.
func (t scanned) EachCached(slot uint32, fn func(key uint64, row []float32)) {
	if t.opts.ReadOnly {
		return
	}
	t.cache.ForEachOfSlot(uint64(slot), t.index.MaskOf(slot), func(e rowcache.Entry) rowcache.Change {
		if t.trained(e.Row) {
			fn(e.Key, e.Row)
		}
		return rowcache.Change{}
	})
}

// ReadBuckets implements scan.Table.
func (t scanned) ReadBuckets(list []uint32, fn func(slot uint32, b *bucketfile.Bucket) error) (n int, err error) {
	n = t.batchOf(list)
	return n, t.readBuckets(list[:n], fn)
}
