package ssd

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/restore"
	"aibox/sparsetable/internal/rowcache"
)

// removeUnreferenced deletes delta files that no snapshot refers to and spools that unfinished imports
// left behind.
func (t *Table) removeUnreferenced() error {
	if t.opts.ReadOnly {
		return nil
	}
	if err := t.spools().Remove(); err != nil {
		return err
	}
	return t.checkpoints.RemoveUnreferenced()
}

// restoreDirty loads the rows that were dirty when the snapshot was fixed. A table that is opened
// for reading only leaves them in the delta files, see restoreOutside.
func (t *Table) restoreDirty(ctx context.Context, s catalog.Snapshot) error {
	t.restorer = &restore.Restorer{Options: restore.Options{
		Table: restoring{t}, Cache: t.cache, Checkpoints: t.checkpoints, Index: t.index, IndexMu: &t.indexMu, Changing: t.changing,
		Hash: t.hash, Words: t.layout.Words(), Lost: t.lost, Incoming: &t.pull.Incoming,
	}}
	if t.opts.ReadOnly {
		return t.restoreOutside(ctx, s)
	}
	return t.restorer.Dirty(ctx, s)
}

// restoreHot loads the clean rows of the snapshot into the cache, in turns with Pulls. They only
// make the next pulls faster, because their buckets have them, too. So if the file is damaged or
// cannot be read, restoreHot logs a warning and skips the rest. Slots are not merged meanwhile, see
// tooManySlots.
func (t *Table) restoreHot(ctx context.Context) {
	defer panics.Exit("restoring the rows used most")
	defer t.nowRestored()
	if t.opts.HotBytes < 0 {
		return
	}
	start := time.Now()
	rows, err := t.restorer.Clean(ctx, t.opened, t.outside)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := t.catalog.Snapshot(t.opened.ID); errors.Is(e, catalog.ErrNoSnapshot) {
			return // the snapshot was dropped, and its file deleted, before the file was opened
		}
	}
	if err != nil && ctx.Err() == nil {
		t.opts.Logger.Warn("sparsetable: the most used rows could not be restored into memory; they are read from their buckets when they are needed",
			"restored", rows, "error", apierr.Of(err))
		return
	}
	if rows > 0 {
		t.opts.Logger.Debug("most used rows restored", slog.Int64("rows", rows), slog.Duration("time", time.Since(start)))
	}
}

// nowRestored allows slots to be merged from now on.
func (t *Table) nowRestored() {
	close(t.restored)
	if t.opts.ReadOnly {
		return
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if t.slotsToMerge() {
		t.wake()
	}
}

// restoring is the Restorer's view of the table; it implements restore.Table.
type restoring struct{ *Table }

// InsertDirty implements restore.Table.
func (t restoring) InsertDirty(ctx context.Context, rows *rowcache.Incoming, refs []uint32) error {
	err := t.insertBy(ctx, t.cache.Reinsert, rows, refs, false)
	if errors.Is(err, errNoVictims) {
		return t.TooSmall()
	}
	return err
}

// Empty implements restore.Table.
func (t restoring) Empty(ctx context.Context) error {
	for st := t.cache.Stats(); st.Rows > 0; {
		before := st.Rows
		_, err := t.makeRoom(int(min(before, evictBatch)))
		if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil {
			_, err = t.makeRoom(int(min(before, evictBatch)))
		}
		if err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return err
		}
		if st = t.cache.Stats(); st.Rows == before {
			return errNoVictims
		}
	}
	return nil
}

// Borrow implements restore.Table.
func (t restoring) Borrow(ctx context.Context, bytes int64) error {
	err := t.borrow(ctx, bytes)
	if errors.Is(err, errNoVictims) {
		return t.TooSmall()
	}
	return err
}

// GiveBack implements restore.Table.
func (t restoring) GiveBack(bytes int64) { t.giveBack(bytes) }

// FitRows implements restore.Table.
func (t restoring) FitRows() int64 { return t.fitRows.Load() }

// HasRoom implements restore.Table. The part of the cache that the background writer keeps free
// counts as taken.
func (t restoring) HasRoom(rows int) bool {
	return t.freeRows(t.cache.Stats().Rows)-2*t.fitRows.Load()/freeShare >= int64(rows)
}

// TooSmall implements restore.Table.
func (t restoring) TooSmall() error {
	return t.overBudget("the snapshot's rows in memory", t.aLittleMore())
}
