package sparsetable

import (
	"context"
	"slices"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/spool"
)

// bulkMerge merges the rows of loaded areas with the table.
type bulkMerge struct {
	area  *spool.Area
	entry int
	again []uint32 // slots whose buckets are to be read once more

	// table is a hash table with linear probing over the keys of the slot that is
	// being merged. An entry is the key's place in rewriter.keys plus 1, or 0. Only
	// table[:size] is in use.
	table []uint32
	size  int
}

// mergeUnits merges the units of a spool, in their order.
func (l *bulkLoad) mergeUnits(s *spool.Spool, units []spool.Unit, plan spool.Plan) error {
	m := &l.merge
	loader, table := s.NewLoader(plan, l.arena, l.t.index.Slots())
	m.entry, m.table = l.t.entryBytes(), table
	ctx, stop := context.WithCancel(l.ctx)
	ended := make(chan struct{})
	panics.Go("reading a spool", func() {
		defer close(ended)
		loader.Run(ctx, units)
	})
	// The arena is the loader's until it has ended.
	defer func() { stop(); <-ended }()
	for a := range loader.Loaded() {
		if a.Err != nil {
			return a.Err
		}
		if err := l.mergeArea(a); err != nil {
			return err
		}
		u, ends := a.Unit, a.Ends
		loader.Free(a)
		if ends {
			if err := s.Done(u); err != nil {
				return err
			}
		}
	}
	return l.ctx.Err()
}

// mergeSlot writes the bucket of a slot. It has the slot's rows in the area, the
// other dirty rows of the slot in the cache, and the remaining rows of the old
// bucket.
func (l *bulkLoad) mergeSlot(slot uint32, old *bucketfile.Bucket, cached bool) error {
	t, m, w := l.t, &l.merge, &l.t.rewrite.rewriter
	rows := m.area.RowsOf(slot)
	m.take(w, rows)
	imported := len(w.keys)
	before := 0
	mask := t.index.MaskOf(slot)
	t.lockMoving(slot, mask, old)
	defer t.rewrite.moving.Unlock()
	w.dirtyRefs, w.dirtyKeys = w.dirtyRefs[:0], w.dirtyKeys[:0]
	if cached {
		l.mergeCached(slot, mask)
		imported -= len(w.dirtyRefs) // counted as dirty rows
	}
	if old != nil {
		before = old.Len()
		m.takeOld(w, old)
	}
	written := w.counts.writtenBytes
	prev, err := t.replaceBucket(slot, before)
	w.counts.importedBytes += w.counts.writtenBytes - written
	if err != nil {
		return err
	}
	w.counts.importedRows += int64(len(rows))
	w.counts.flushedRows += int64(max(0, imported))
	l.applied += int64(len(rows))
	return t.files.Release(prev)
}

// mergeCached overwrites cached rows with the imported rows of the same keys, and
// adds the other dirty rows of the slot to the bucket.
func (l *bulkLoad) mergeCached(slot uint32, mask uint64) {
	t, m, w := l.t, &l.merge, &l.t.rewrite.rewriter
	// No row is pinned, and all other readers of rows wait for rewrite.
	t.cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		i := m.find(w, e.Key)
		if i < 0 {
			return rowcache.Change{}
		}
		copy(e.Row, w.rows[i])
		return rowcache.Change{Set: rowcache.Dirty} // until it is written
	})
	t.collectDirty(slot, mask)
	words := t.layout.Words()
	for i, key := range w.dirtyKeys {
		if m.find(w, key) < 0 {
			w.add(key, w.words[i*words:(i+1)*words], nil)
		}
	}
}

// take sets keys, hashes and rows of w to the rows at the offsets; of rows with the
// same key the last one counts.
func (m *bulkMerge) take(w *rewriter, offsets []uint32) {
	w.keys, w.hashes, w.rows, w.replaced = w.keys[:0], w.hashes[:0], w.rows[:0], -1 // the keys may be others
	m.size = spool.KeyTable(len(offsets))
	clear(m.table[:m.size])
	for _, at := range offsets {
		key, row := m.area.Entry(at, m.entry)
		h := w.hash.Of(key)
		i := m.place(w, key, h)
		if at := m.table[i]; at != 0 {
			w.rows[at-1] = row
			continue
		}
		w.keys = append(w.keys, key)
		w.hashes = append(w.hashes, h)
		w.rows = append(w.rows, row)
		m.table[i] = uint32(len(w.keys))
	}
}

// place is where in the table a key is, or would be.
func (m *bulkMerge) place(w *rewriter, key, hash uint64) int {
	// The low bits of the hash are those of the slot.
	i := int(hash>>40) & (m.size - 1)
	for m.table[i] != 0 && w.keys[m.table[i]-1] != key {
		i = (i + 1) & (m.size - 1)
	}
	return i
}

// find is the place of an imported key in rewriter.keys, -1 if there is none.
func (m *bulkMerge) find(w *rewriter, key uint64) int {
	return int(m.table[m.place(w, key, w.hash.Of(key))]) - 1
}

// takeOld adds those rows of the old bucket whose keys are neither imported nor
// dirty in the cache.
func (m *bulkMerge) takeOld(w *rewriter, old *bucketfile.Bucket) {
	for i := range old.Len() {
		if key := old.Key(i); m.find(w, key) < 0 && !slices.Contains(w.dirtyKeys, key) {
			w.add(key, old.Row(i), nil)
		}
	}
}
