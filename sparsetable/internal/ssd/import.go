package ssd

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/bulk"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/spool"
)

// Import implements Table.
func (t *Table) Import(ctx context.Context, src contract.RowSource) (rows int64, err error) {
	end, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	return bulk.Import(ctx, bulk.Options{
		Table: importing{t}, Plan: t.bulk, Spools: t.spools(), Hash: t.hash, Words: t.layout.Words(), Entry: t.entryBytes(), Trained: t.trained,
		Files: t.files, Space: &t.space, Index: t.index, IndexMu: &t.indexMu,
	}, src)
}

// spools returns the store of the spools of imports.
func (t *Table) spools() *spool.Store {
	return &spool.Store{
		Devices: t.dirs.Devices, Table: t.tableID, RowBytes: t.layout.Bytes(), Hash: t.hash,
		Charge: t.files.Charge, Written: func(bytes int64) { t.spooled.Add(bytes) },
	}
}

// importing is an import's view of the table; it implements bulk.Table.
type importing struct{ *Table }

// Borrow implements bulk.Table.
func (t importing) Borrow(ctx context.Context, bytes, least int64) (int64, error) {
	return t.borrowUpTo(ctx, bytes, least)
}

// GiveBack implements bulk.Table.
func (t importing) GiveBack(bytes int64) { t.giveBack(bytes) }

// PullLimit implements bulk.Table.
func (t importing) PullLimit() int {
	return max(1, min(bulk.Batch, int(t.cache.Stats().FitRows/4), (64<<20)/t.entryBytes()))
}

// Overwrite implements bulk.Table: it pulls keys and overwrites their rows with those of entries,
// in smaller parts if not all of them can be pinned within the budget.
func (t importing) Overwrite(ctx context.Context, keys []uint64, entries []byte) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	entry := t.entryBytes()
	t.pull.divisible, t.pull.ahead = false, false
	ws, err := t.pullKeys(ctx, keys, contract.PullCreate)
	if half := len(keys) / 2; errors.Is(err, contract.ErrBudget) && half > 0 {
		if err := t.Overwrite(ctx, keys[:half], entries[:half*entry]); err != nil {
			return err
		}
		return t.Overwrite(ctx, keys[half:], entries[half*entry:])
	}
	if err != nil {
		return err
	}
	t.publish(ws)
	i := 0
	err = spool.EachEntry(entries, entry, func(_ uint64, row []float32) error {
		copy(ws.Row(i), row)
		i++
		return nil
	})
	ws.Release()
	return err
}
