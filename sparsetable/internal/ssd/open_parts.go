package ssd

import (
	"context"
	"errors"
	"fmt"
	"math"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/inorder"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/space"
)

// allocate makes the cache, the index and the pools of buffers.
func (t *Table) allocate(rows, slotsNow int64) (err error) {
	table := t.opts.planned(t.layout, t.unit)
	if need := (plan.Load{Rows: rows, Slots: slotsNow}); !table.Fits(t.opts.MemoryBytes, need) {
		return t.overBudget(fmt.Sprintf("a table of %d rows in %d slots", rows, slotsNow), table.Smallest(need))
	}
	t.plan = table.Of(t.opts.MemoryBytes, rows, slotsNow)
	if t.opts.ReadOnly {
		t.plan.ForReading()
	}
	t.carried.SetLimit(t.plan.CarryBytes)
	align := t.unit // a table that was made on other devices may have smaller units
	for _, d := range t.dirs.Devices {
		align = max(align, d.Unit())
	}
	t.pool = blockio.NewPool(align, t.plan.PoolBytes-t.plan.BeyondBytes())
	if t.index, err = slots.New(t.plan.IndexOptions()); err != nil {
		return err
	}
	o := t.plan.CacheOptions()
	o.Hash = t.hash.Of
	if t.cache, err = rowcache.New(o); err != nil {
		return err
	}
	t.checkpoints = checkpoint.New(checkpoint.Options{
		Table: snapshotted{t}, Catalog: t.catalog, Cache: t.cache, Index: t.index, IndexMu: &t.indexMu, Trained: t.trained, Hash: t.hash.Of,
		Deltas: &deltafile.Store{
			Devices: t.dirs.Devices, Table: t.tableID, RowBytes: t.layout.Bytes(), Unit: t.unit,
			Blocks: blockio.NewPool(align, 0), Reads: t.pool,
		},
		CatalogPath: t.dirs.CatalogPath(), MemoryBytes: t.opts.MemoryBytes, HotBytes: t.opts.HotBytes, FullFiles: space.FullFiles, ReadOnly: t.opts.ReadOnly, Logger: t.opts.Logger,
	})
	return nil
}

func (t *Table) loadIndex(ctx context.Context, s catalog.Snapshot) error {
	if err := t.index.Restore(s.Slots); err != nil {
		return err
	}
	_, err := t.catalog.Load(s.ID, func(page uint32, data []byte) error {
		if page%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return t.index.DecodePage(page, data)
	})
	var bad *slots.PageError
	if errors.As(err, &bad) {
		return &contract.CorruptionError{File: t.dirs.CatalogPath(), Offset: -1, Reason: bad.Error()}
	}
	return err
}

// loadCopiedIndex loads the index from a copy of the catalog if cause is damage of the catalog,
// which may show only when its pages are read. Otherwise it returns cause.
func (t *Table) loadCopiedIndex(ctx context.Context, s catalog.Snapshot, on media, cause error) error {
	if !errors.As(apierr.Of(cause), new(*contract.CorruptionError)) {
		return cause
	}
	if err := t.reopenCatalog(t.catalogOptions(on), cause); err != nil {
		return err
	}
	t.checkpoints.Catalog = t.catalog
	if _, err := t.catalog.Snapshot(s.ID); err != nil {
		return errors.Join(cause, err)
	}
	return t.loadIndex(ctx, s)
}

// reopenCatalog replaces the open catalog, whose damage is cause, by a copy.
func (t *Table) reopenCatalog(o catalog.Options, cause error) error {
	err := t.catalog.Close()
	t.catalog = nil
	if err != nil {
		return errors.Join(cause, err)
	}
	t.catalog, err = t.dirs.OpenCopy(o, cause)
	return err
}

func (t *Table) openFiles(ctx context.Context, current catalog.Snapshot) (err error) {
	var kept []bucketfile.State
	for _, s := range t.catalog.Snapshots() {
		if s.ID != current.ID {
			kept = append(kept, checkpoint.FileState(s, t.unit))
		}
	}
	o := bucketfile.Options{
		Table: t.tableID, RowWords: t.layout.Words(), Format: uint8(t.layout.Format), Devices: t.dirs.Devices,
		BufferBytes: t.plan.BufferBytes, Buffers: plan.AppendBuffers, Pool: t.pool,
		UnitBytes: t.unit, ReserveBytes: space.ReservedBytes, Logger: t.opts.Logger, ReadOnly: t.opts.ReadOnly,
	}
	for range t.dirs.Devices {
		o.BudgetBytes = append(o.BudgetBytes, t.opts.DirBudgetBytes)
	}
	if b := t.opts.DirBudgetBytes; b > 0 {
		// Files must not be so large that the reserve takes a large part of the budget, nor so
		// small that there are very many.
		o.FileBytes = max(min(max(128<<20, b/256), b/16, bucketfile.MaxFileBytes(t.unit))/4096*4096, int64(o.BufferBytes))
		o.UrgentBytes = 2 * o.FileBytes // room to move a file's buckets together with dirty rows
	}
	o.MinFileBytes = t.plan.MinFileBytes()
	if t.plan.ReadBytes < 8<<20 {
		o.MergeBytes = int64(o.UnitBytes) // the bytes between two buckets that are read together take memory, too
	}
	t.files, err = bucketfile.Open(ctx, checkpoint.FileState(current, t.unit), kept, o)
	if errors.Is(err, bucketfile.ErrUnknownFile) || errors.Is(err, bucketfile.ErrTwoFiles) {
		return fmt.Errorf("%w: mount or name the directory that has the rest, or restore the table from a copy: %w", contract.ErrFiles, err)
	}
	if err != nil {
		return err
	}
	t.space = space.Policy{
		Files: t.files, Devices: t.dirs.Devices, MaxAmplification: t.opts.MaxSpaceAmplification,
		BufferBytes: t.plan.BufferBytes, MinFileBytes: t.plan.MinFileBytes(),
	}
	if err := t.checkpoints.Open(t.files, current); err != nil {
		return err
	}
	t.rewrite.stored = checkpoint.StoredRows(current)
	t.rewrite.queue = t.files.NewQueue()
	t.rewrite.ordered = inorder.New(t.rewrite.queue, t.index, &t.indexMu, t.unit, rewriteBatch, math.MaxInt64)
	t.pull.queue = t.files.NewQueue()
	return nil
}
