package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
)

// removeStrays deletes the delta files that no snapshot refers to, and the spools
// that unfinished imports left behind.
func (t *ssd) removeStrays() error {
	if t.opts.ReadOnly {
		return nil
	}
	if err := t.spools().Remove(); err != nil {
		return err
	}
	return t.checkpoints.RemoveStrays()
}

// restoreDirty loads the rows that were dirty when the snapshot was fixed, those
// used most first. Open waits for it, because any of these rows may be newer than
// its bucket: nothing could be pulled, scanned or saved before all are in the
// cache. So damage of the file is an error of Open. The rate is that at which the
// device reads or the cache is filled. Where the rows do not fit the cache, those
// used least are written to their buckets and leave it again.
//
// A table that is opened for reading only leaves the rows in the delta file, see
// outside.
func (t *ssd) restoreDirty(ctx context.Context, s catalog.Snapshot) error {
	if t.opts.ReadOnly {
		return t.restoreOutside(ctx, s)
	}
	if t.lost != nil {
		return t.restoreLeft(ctx, s)
	}
	list := checkpoint.Layers(checkpoint.WithDirtyRows(s.Deltas))
	if len(list) == 0 {
		return nil
	}
	if len(list) == 1 && checkpoint.NoBucketSince(list[0].Instant(), s) { // no bucket was written since
		return t.restoreFiles(ctx, list[0])
	}
	r := listRestore{t: t, list: list}
	defer r.close()
	return r.restore(ctx, hashRange{})
}

// restoreFiles loads the dirty rows of a snapshot that has all rows of files of one instant.
// Where they do not fit, those used least leave the cache again.
func (t *ssd) restoreFiles(ctx context.Context, layer checkpoint.Layer) error {
	var b restoreBatch
	d := layer.Instant()
	return t.checkpoints.EachDirty(ctx, layer, func(_ int, r *deltafile.Reader, n int) error {
		// The rows of a part are pinned until all rows of the part are inserted.
		for from, part := 0, t.restorePart(); from < n; from += part {
			if err := t.restoreBlock(ctx, r, d, from, min(from+part, n), &b); err != nil {
				return err
			}
		}
		t.sets.Lock()
		t.sets.stats.RestoredRows += int64(n)
		t.sets.Unlock()
		return nil
	})
}

// restoreBatch is the scratch memory for restoring a block.
type restoreBatch struct {
	refs   []uint32
	stored []uint32
	in     []bool
}

// restorePart is how many rows of a block are restored at a time. The smallest
// cache does not hold the rows of a whole block.
func (t *ssd) restorePart() int { return int(max(1, t.fitRows.Load()/4)) }

// restoreBlock puts rows of the block into the cache, dirty.
func (t *ssd) restoreBlock(ctx context.Context, r *deltafile.Reader, d *catalog.Delta, from, to int, b *restoreBatch) error {
	t.batchOfBlock(r, from, to)
	p := &t.pull
	b.refs, b.stored = resized(b.refs, to-from), b.stored[:0]
	clear(b.refs)
	err := t.insertBy(ctx, t.cache.Reinsert, &p.Incoming, b.refs, false)
	for i, ref := range b.refs {
		if _, info, _ := r.Entry(from + i); info&1 != 0 {
			b.stored = append(b.stored, ref) // the cache ignores a reference of 0
		}
	}
	t.cache.Change(b.stored, rowcache.Change{Set: checkpoint.Stored})
	t.cache.Release(b.refs, true)
	t.markSaved(b.refs, d)
	if errors.Is(err, errNoVictims) {
		return t.overBudget("the snapshot's rows in memory", t.aLittleMore())
	}
	return err
}

// markSaved gives checkpoint.Saved to the rows at refs, those of the batch, unless the bucket of
// their slot was written since the instant of the file that has them.
func (t *ssd) markSaved(refs []uint32, d *catalog.Delta) {
	t.indexMu.RLock()
	for i, h := range t.pull.Hashes[:len(refs)] {
		if !t.checkpoints.WrittenBefore(d, t.bucketOf(h)) {
			refs[i] = 0
		}
	}
	t.indexMu.RUnlock()
	t.cache.Change(refs, rowcache.Change{Set: checkpoint.Saved})
}

// resized is s with n elements, which may be a new slice.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// batchOfBlock sets the batch to insert to the rows of a block from one number to
// another.
func (t *ssd) batchOfBlock(r *deltafile.Reader, from, to int) {
	p := &t.pull
	p.Clear()
	for i := range to - from {
		key, info, row := r.Entry(from + i)
		p.Add(key, t.hash.Of(key), max(info>>1, 1)-1, uint32(i), row) // inserting counts as one use
	}
}
