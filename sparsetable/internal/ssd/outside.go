package ssd

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/plan"
)

// restoreOutside builds the index of the rows outside of buckets, and puts these rows into the
// cache while there is room, the most used first. They are clean in the cache, because they can be
// read again.
func (t *Table) restoreOutside(ctx context.Context, s catalog.Snapshot) error {
	list := checkpoint.WithDirtyRows(s.Deltas)
	if len(list) == 0 {
		return nil
	}
	x, err := outside.New(outside.Options{
		Deltas: list, DirOf: t.checkpoints.DirOf, Devices: t.dirs.Devices, Pool: t.pool,
		RowBytes: t.layout.Bytes(), Hash: t.hash, CatalogPath: t.dirs.CatalogPath(),
	})
	if err != nil {
		return err
	}
	if err := t.roomOutside(ctx, s, x.NeedBytes()); err != nil {
		return err
	}
	t.outside = x
	if err := x.Open(); err != nil {
		return err
	}
	full := t.opts.HotBytes < 0
	err = t.outside.Each(ctx, t.checkpoints, func(file int, r *deltafile.Reader, rows int) error {
		d := x.Instant(file)
		for i := range rows {
			key, _, _ := r.Entry(i)
			h := t.hash.Of(key)
			if !t.checkpoints.WrittenBefore(d, t.bucketOf(h)) {
				continue
			}
			if err := x.Add(file, r, i, h); err != nil {
				return err
			}
		}
		if full {
			return nil
		}
		full, err = t.restorer.Block(r, rows, d) // once full, none is added any more, so that no row is taken from an older file
		return err
	})
	if err != nil {
		return err
	}
	return x.Sort()
}

// roomOutside makes room for bytes of the index of rows outside of buckets.
func (t *Table) roomOutside(ctx context.Context, s catalog.Snapshot, bytes int64) error {
	err := t.reserveNow(ctx, bytes)
	for errors.Is(err, errNoVictims) && t.tryShrinkFilters(0) {
		err = t.reserveNow(ctx, bytes)
	}
	if errors.Is(err, errNoVictims) {
		need := t.plan.Smallest(plan.Load{Rows: s.Rows, Slots: int64(t.index.Slots()), Other: bytes})
		return t.overBudget(fmt.Sprintf("the index of %d rows outside of buckets", checkpoint.DirtyRows(s.Deltas)), max(need, t.aLittleMore()))
	}
	return err
}

// fetchOutside reads the rows of missing positions that are outside of buckets,
// puts them into the cache, and removes their positions from missing.
func (t *Table) fetchOutside(ctx context.Context, refs []uint32) (err error) {
	p := &t.pull
	reads, bytes := t.outside.DeviceReads()
	p.missing, err = t.outside.Read(ctx, p.hashes, p.missing, t.plan.ReadBytes/4, func(rows []outside.Row) error {
		p.Clear()
		for _, r := range rows {
			p.Add(r.Key, p.hashes[r.At], t.layout.Stats(r.Words).Count, r.At, r.Words)
		}
		return t.insert(ctx, &p.Incoming, refs, true)
	})
	r, b := t.outside.DeviceReads()
	p.counts.deviceReads += r - reads
	p.counts.readBytes += b - bytes
	return err
}
