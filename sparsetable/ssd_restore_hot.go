package sparsetable

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
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
)

// restoreHot brings the clean rows of the snapshot back into the cache, those
// used most first, in turns with Pulls. It stops where the cache has
// no room beyond what the background writer keeps free. They only make the next
// pulls faster, because their buckets have them, too. So where the file cannot be
// read, or is damaged, the rest of them is left out with a warning.
//
// The file has a row as it was when the snapshot was fixed. Such a row is restored
// only if it is not in the cache and if its slot's bucket lies in a file that was there
// when the table was opened. Then the row is still the same: to be changed, it had to
// be in the cache, from where it could leave only into a bucket in a file that was made
// since, as files of an earlier run are not appended to. The restore of a block holds
// changing, so it finds the row in one of the two places, see ssd. Rows are also
// skipped whose slot was split, compacted or written for other rows. Slots are not merged
// meanwhile, see tooManySlots.
func (t *ssd) restoreHot(ctx context.Context) {
	defer panics.Exit("restoring the rows used most")
	defer t.nowRestored()
	start := time.Now()
	rows, err := t.restoreClean(ctx, t.opened)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := t.catalog.Snapshot(t.opened.ID); errors.Is(e, catalog.ErrNoSnapshot) {
			return // the snapshot was dropped, and its file deleted, before the file was opened
		}
	}
	if err != nil && ctx.Err() == nil {
		t.opts.Logger.Warn("sparsetable: the rows used most cannot be brought back into memory; they are read from their buckets when they are needed",
			"restored", rows, "error", apierr.Of(err))
		return
	}
	if rows > 0 {
		t.opts.Logger.Debug("rows used most restored", slog.Int64("rows", rows), slog.Duration("time", time.Since(start)))
	}
}

// nowRestored lets slots be merged.
func (t *ssd) nowRestored() {
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

func (t *ssd) restoreClean(ctx context.Context, s catalog.Snapshot) (rows int64, err error) {
	if t.opts.SSD.HotBytes < 0 {
		return 0, nil
	}
	var b restoreBatch
	var since time.Time // when the turn began; zero between turns
	err = t.checkpoints.EachClean(ctx, s, func(r *deltafile.Reader, n int) (more bool, err error) {
		if since.IsZero() {
			if err := t.changing.Acquire(ctx); err != nil {
				return false, err
			}
			since = time.Now()
		}
		got, full, err := t.restoreCleanBlock(r, checkpoint.Newest(s.Deltas).Instant(), n, &b)
		rows += int64(got)
		if time.Since(since) > restoreTurn {
			since = time.Time{}
			t.changing.Release()
		}
		return !full, err
	})
	if !since.IsZero() {
		t.changing.Release()
	}
	return rows, err
}

// restoreTurn is how long rows are restored before Pulls get a turn. With shorter
// turns, where Pulls follow each other without a pause, the rows would be restored
// too late to be of use.
const restoreTurn = 20 * time.Millisecond

// restoreCleanBlock puts the rows of the block that are still the latest versions
// into the cache, and reports whether the cache is full. REQUIRES: changing is
// held.
func (t *ssd) restoreCleanBlock(r *deltafile.Reader, d *catalog.Delta, n int, b *restoreBatch) (rows int, full bool, err error) {
	if !t.roomToRestore(n) {
		return 0, true, nil
	}
	t.batchOfBlock(r, 0, n)
	t.keepUnchanged(d, b)
	rows, full, err = t.cacheBatch(b)
	t.sets.Lock()
	t.sets.stats.RestoredRows += int64(rows)
	t.sets.Unlock()
	return rows, full, err
}

// roomToRestore reports whether the cache has room for that many rows besides the
// part that is kept free.
func (t *ssd) roomToRestore(n int) bool {
	return t.freeRows(t.cache.Stats().Rows)-2*t.fitRows.Load()/freeShare >= int64(n)
}

// cacheBatch puts the batch into the cache, as clean rows, and reports whether the
// cache is full. REQUIRES: changing is held, and none of the rows is in the cache.
func (t *ssd) cacheBatch(b *restoreBatch) (rows int, full bool, err error) {
	p := &t.pull
	n := len(p.Keys)
	if !t.roomToRestore(n) {
		return 0, true, nil
	}
	b.refs = resized(b.refs, n)
	added, err := t.fillBatch(b, true)
	t.cache.Release(b.refs[:added], false)
	return added, added < n, err
}

// fillBatch puts as many rows of the batch into the cache as there is room for, pinned,
// and sets the references in b.
func (t *ssd) fillBatch(b *restoreBatch, stored bool) (added int, err error) {
	p := &t.pull
	clear(b.refs)
	added, err = t.cache.Reinsert(p.Keys, p.Hashes, p.Uses, b.refs, stored)
	slabs, shift, mask := t.cache.Slabs()
	words := t.layout.Words()
	for i, ref := range b.refs[:added] {
		copy(slabs[ref>>shift][int(ref&mask)*words:][:words], p.Rows[i])
	}
	return added, err
}

// keepUnchanged removes from the batch, of clean rows of a file, the rows that are in the
// cache or outside of buckets, and those whose slot's bucket was written since the instant
// of the file or is in a file that was made since the table was opened. REQUIRES: changing
// is held.
func (t *ssd) keepUnchanged(d *catalog.Delta, b *restoreBatch) {
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	t.keepOfBatch(b, func(hash uint64, loc bucketfile.Location) bool {
		return loc != 0 && t.checkpoints.WrittenBefore(d, loc) && !t.outside.HasHash(hash)
	})
}

// keepOfBatch removes from the batch the rows that are in the cache, and those for whose
// hash and bucket keep returns false. REQUIRES: indexMu is held, or nobody else works on
// the table.
func (t *ssd) keepOfBatch(b *restoreBatch, keep func(hash uint64, loc bucketfile.Location) bool) {
	p := &t.pull
	b.in = resized(b.in, len(p.Keys))
	t.cache.Contains(p.Keys, p.Hashes, b.in)
	kept := 0
	for i, h := range p.Hashes {
		if b.in[i] || !keep(h, t.bucketOf(h)) {
			continue
		}
		p.Move(kept, i)
		kept++
	}
	p.Cut(kept)
}
