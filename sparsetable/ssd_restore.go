package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
)

// removeStrays deletes the delta files that no snapshot refers to, and the spools
// that unfinished imports left behind.
func (t *ssd) removeStrays() error {
	if t.readOnly {
		return nil
	}
	if err := t.removeSpools(); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, s := range t.catalog.Snapshots() {
		for _, d := range s.Deltas {
			wanted[d.Name] = true
		}
	}
	names, err := t.devices[0].List()
	if err != nil {
		return fmt.Errorf("sparsetable: list %s: %w", t.devices[0].Dir(), err)
	}
	prefix := fmt.Sprintf("%016x-", t.tableID)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, deltaSuffix) && !wanted[n] {
			if err := t.devices[0].Remove(n); err != nil {
				return fmt.Errorf("sparsetable: remove an unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}

// restoreReadAhead is how many blocks of a delta file are read ahead during Open,
// when nothing else is read. That is enough for a device to read at its full rate.
const restoreReadAhead = 8

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
	if t.readOnly {
		return t.restoreOutside(ctx, s)
	}
	var b restoreBatch
	return t.eachDirty(ctx, s, func(r *deltaReader, n int) error {
		// The rows of a part are pinned until all rows of the part are inserted.
		for from, part := 0, t.restorePart(); from < n; from += part {
			if err := t.restoreBlock(ctx, r, from, min(from+part, n), &b); err != nil {
				return err
			}
		}
		t.mu.Lock()
		t.mu.stats.RestoredRows += int64(n)
		t.mu.Unlock()
		return nil
	})
}

// eachDirty reads the blocks of dirty rows and calls fn for each, with the number
// of its rows.
func (t *ssd) eachDirty(ctx context.Context, s catalog.Snapshot, fn func(r *deltaReader, rows int) error) (err error) {
	if len(s.Deltas) == 0 {
		return nil
	}
	d := s.Deltas[0]
	end, want := s.Counters[counterDirtyBytes], s.Counters[counterDirtyRows]
	if len(s.Deltas) > 1 || end < 0 || end > d.Bytes {
		return &CorruptionError{File: t.catalogPath(), Offset: -1, Reason: fmt.Sprintf("snapshot %d has %d delta files, %d of %d bytes with dirty rows", s.ID, len(s.Deltas), end, d.Bytes)}
	}
	if end == 0 && want == 0 {
		return nil // the file has only clean rows, which are not needed
	}
	r, err := t.readDelta(d, 0, end, deltaDirty, restoreReadAhead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.eachBlock(ctx, want, func(rows int) (bool, error) { return true, fn(r, rows) })
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
func (t *ssd) restoreBlock(ctx context.Context, r *deltaReader, from, to int, b *restoreBatch) error {
	t.batchOfBlock(r, from, to)
	p, n := &t.pull, to-from
	if cap(b.refs) < n {
		b.refs = make([]uint32, n)
	}
	b.refs, b.stored = b.refs[:n], b.stored[:0]
	clear(b.refs)
	err := t.insertBy(ctx, t.cache.Reinsert, b.refs, func(i int, row []float32) { copy(row, p.rows[i]) }, false)
	for i, ref := range b.refs {
		if _, info, _ := r.entry(from + i); info&1 != 0 {
			b.stored = append(b.stored, ref) // the cache ignores a reference of 0
		}
	}
	t.cache.Change(b.stored, rowcache.Change{Set: rowStored})
	t.cache.Release(b.refs, true)
	if errors.Is(err, errNoVictims) {
		return t.overBudget("the snapshot's rows in memory", t.aLittleMore())
	}
	return err
}

// batchOfBlock sets the batch to insert to the rows of a block from one number to
// another.
func (t *ssd) batchOfBlock(r *deltaReader, from, to int) {
	p := &t.pull
	p.clearBatch()
	for i := range to - from {
		key, info, row := r.entry(from + i)
		p.keys = append(p.keys, key)
		p.keyHashes = append(p.keyHashes, t.hash.Of(key))
		p.uses = append(p.uses, max(info>>1, 1)-1) // inserting counts as one use
		p.at = append(p.at, uint32(i))
		p.rows = append(p.rows, row)
	}
}
