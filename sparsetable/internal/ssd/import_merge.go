package ssd

import (
	"context"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/bulk"
	"aibox/sparsetable/internal/inorder"
	"aibox/sparsetable/internal/newbucket"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/spool"
)

const (
	// A large import reads mergeAhead old buckets ahead: as many as a device reads at a time, plus
	// two batches, one of which is being merged.
	mergeAhead = 2*rewriteBatch + blockio.DefaultQueueDepth
	// A gap of up to mergeGapBytes between two buckets is read as well if that saves a read.
	mergeGapBytes = 4 << 10
	maxMergeRead  = 64 << 10
)

// merger merges the rows of loaded areas with the table. It implements bulk.Merger. Buffers for old
// buckets come from a pool of its own, in memory that the import borrowed.
type merger struct {
	t         *Table
	endScan   func()
	pool      *blockio.Pool
	queue     *bucketfile.Queue
	old       *inorder.Reader
	rows      newbucket.Imported
	again     []uint32 // slots whose buckets have to be read again
	reads     uint64   // the queue's counters when they were last added to the statistics
	readBytes uint64
}

// NewMerger implements bulk.Table.
func (t importing) NewMerger(bytes int64) bulk.Merger {
	m := &merger{t: t.Table, pool: blockio.NewPool(t.pool.Unit(), bytes), rows: newbucket.Imported{Content: &t.rewrite.Content}}
	m.queue = t.files.NewQueueIn(m.pool)
	// Buffers are rounded up, by a third at most, and free buffers may not have the wanted sizes.
	// So only half of the pool is planned with.
	limit := bytes / 2
	m.queue.MergeWithin(mergeGapBytes, min(limit/8, maxMergeRead))
	m.old = inorder.New(m.queue, t.index, &t.indexMu, t.unit, mergeAhead, limit)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	m.endScan = t.rewrite.scan()
	return m
}

// Close implements bulk.Merger.
func (m *merger) Close() {
	m.t.rewrite.Lock()
	m.count()
	m.t.rewrite.Unlock()
	m.pool.Close()
	m.endScan()
}

// count adds the reads since the last call to the statistics. REQUIRES: rewrite is held.
func (m *merger) count() {
	reads, bytes := m.queue.DeviceReads()
	c := &m.t.rewrite.counts
	c.reads += int64(reads - m.reads)
	c.readBytes += int64(bytes - m.readBytes)
	m.reads, m.readBytes = reads, bytes
}

// Merge implements bulk.Merger. It writes the buckets of all slots of an area in order, a batch at
// a time, while the next buckets are read.
func (m *merger) Merge(ctx context.Context, a *spool.Area, table []uint32) (rows int64, err error) {
	t := m.t
	m.rows.Table = table
	defer m.old.Drain()
	next := a.Slots(t.index.Slots())
	for {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		m.old.Fill(next)
		n := m.old.Wait(1, int(min(rewriteBatch, t.evictStep())))
		if n == 0 {
			return rows, nil
		}
		merged, err := m.mergeNext(a, n)
		rows += merged
		if err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return rows, err
		}
	}
}

// mergeNext merges the next n slots. Buckets that were moved or rewritten after they were read are
// read again.
func (m *merger) mergeNext(a *spool.Area, n int) (rows int64, err error) {
	t := m.t
	defer m.old.Advance(n)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	m.count()
	cached := t.cache.Stats().Rows > 0
	merge := func(slot uint32, old *bucketfile.Bucket) error {
		merged, err := m.mergeSlot(a, slot, old, cached)
		rows += merged
		return err
	}
	m.again = m.again[:0]
	for i := range n {
		slot, old, ok, err := m.old.Current(i)
		if !ok {
			m.again = append(m.again, slot)
			continue
		}
		if err == nil {
			err = merge(slot, old)
		}
		if err != nil {
			return rows, err
		}
	}
	err = t.eachBucket(m.again, merge)
	return rows, err
}

// mergeSlot writes the new bucket of a slot: the slot's rows in the area, the other dirty rows of
// the slot in the cache, and the remaining rows of the old bucket.
func (m *merger) mergeSlot(a *spool.Area, slot uint32, old *bucketfile.Bucket, cached bool) (rows int64, err error) {
	t, w := m.t, &m.t.rewrite.rewriter
	offsets := a.RowsOf(slot)
	m.rows.Take(a, offsets, t.entryBytes())
	imported := len(w.Keys)
	before := 0
	mask := t.index.MaskOf(slot)
	t.lockMoving(slot, mask, old)
	defer t.rewrite.moving.Unlock()
	if cached {
		m.mergeCached(slot, mask)
		imported -= len(w.DirtyRefs) // counted as dirty rows
	}
	if old != nil {
		before = old.Len()
		m.rows.AddOld(old)
	}
	written := w.counts.writtenBytes
	prev, err := t.replaceBucket(slot, before)
	w.counts.importedBytes += w.counts.writtenBytes - written
	if err != nil {
		return 0, err
	}
	rows = int64(len(offsets))
	w.counts.importedRows += rows
	w.counts.flushedRows += int64(max(0, imported))
	return rows, t.files.Release(prev)
}

// mergeCached overwrites cached rows with the imported rows of the same keys, and
// adds the other dirty rows of the slot to the bucket.
func (m *merger) mergeCached(slot uint32, mask uint64) {
	t := m.t
	// No row is pinned, and all other readers of rows wait for rewrite.
	t.cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		i := m.rows.Find(e.Key)
		if i < 0 {
			return rowcache.Change{}
		}
		copy(e.Row, m.rows.Rows[i])
		return rowcache.Change{Set: rowcache.Dirty} // until it is written
	})
	t.collectDirty(slot, mask)
	m.rows.AddDirtyOthers()
}
