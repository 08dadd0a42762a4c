package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// Scan implements Table. Pulls wait until it ends.
func (t *ssd) Scan(ctx context.Context, fn func(key uint64, row []float32) error) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	if err := acquire(ctx, t.changing); err != nil {
		return err
	}
	defer func() { <-t.changing }()
	n, end, err := t.beginScan()
	if err != nil {
		return tableError(err)
	}
	defer end()
	var list []uint32
	s := scanned{words: t.layout.Words()}
	for slot := uint32(0); slot < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		list = list[:0]
		for at := slot; at < n && len(list) < rewriteBatch; at++ {
			list = append(list, at)
		}
		s.keys, s.rows = s.keys[:0], s.rows[:0]
		t.rewrite.Lock()
		list = list[:t.batchOf(list)]
		err := t.readBuckets(list, func(slot uint32, b *bucketfile.Bucket) error {
			t.scanSlot(&s, slot, b)
			return nil
		})
		t.rewrite.Unlock()
		if err != nil {
			return tableError(err)
		}
		for i, key := range s.keys {
			if err := fn(key, s.rows[i*s.words:(i+1)*s.words]); err != nil {
				return err
			}
		}
		slot += uint32(len(list))
	}
	return nil
}

// beginScan makes slots stay as they are, so that each row is in one place all
// the time, until end is called, and returns their number. REQUIRES: changing
// is held, so that no row comes which would want more slots.
func (t *ssd) beginScan() (slots uint32, end func(), err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.split(); err != nil {
		return 0, nil, err
	}
	t.rewrite.scanning++
	return t.index.Slots(), func() {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		t.rewrite.scanning--
	}, nil
}

// scanned are copies of rows.
type scanned struct {
	words int
	keys  []uint64
	rows  []float32
}

// scanSlot adds the rows of a slot: those in the cache, and of those in its
// bucket the others.
func (t *ssd) scanSlot(s *scanned, slot uint32, b *bucketfile.Bucket) {
	from := len(s.keys)
	t.cache.ForEachOfSlot(uint64(slot), slotMask(slot, t.index.Slots()), func(e rowcache.Entry) rowcache.Change {
		if t.trained(e.Row) {
			s.keys = append(s.keys, e.Key)
			s.rows = append(s.rows, e.Row...)
		}
		return rowcache.Change{}
	})
	if b == nil {
		return
	}
	cached := s.keys[from:]
next:
	for i := range b.Len() {
		key := b.Key(i)
		for _, k := range cached {
			if k == key {
				continue next
			}
		}
		s.keys = append(s.keys, key)
		s.rows = append(s.rows, b.Row(i)...)
	}
}

// change is the beginning of Import and Expire; the caller calls the returned
// function at the end.
func (t *ssd) change(ctx context.Context) (end func(), err error) {
	if t.readOnly {
		return nil, ErrReadOnly
	}
	if end, err = hold(ctx, t.enter, t.leave, t.changing, t.saving); err != nil {
		return nil, err
	}
	t.mu.Lock()
	n := len(t.mu.live)
	t.mu.Unlock()
	err = t.failure()
	if n > 0 {
		err = fmt.Errorf("%w: %d", ErrPinned, n)
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// importBatch is how many rows are imported at a time.
const importBatch = 1024

// Import implements Table: it pulls the rows in batches and overwrites them.
func (t *ssd) Import(ctx context.Context, src RowSource) (rows int64, err error) {
	end, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	words := t.layout.Words()
	keys := make([]uint64, 0, importBatch)
	seen := make(map[uint64]struct{}, importBatch)
	data := make([]float32, 0, importBatch*words)
	flush := func() error {
		if err := t.importRows(ctx, keys, data); err != nil {
			return fmt.Errorf("after %d imported rows: %w", rows, err)
		}
		rows += int64(len(keys))
		keys, data = keys[:0], data[:0]
		clear(seen)
		return nil
	}
	limit := max(1, min(importBatch, int(t.cache.Stats().FitRows/4), (64<<20)/(4*words)))
	for {
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return rows, flush()
		}
		if err == nil && len(row) != words {
			err = fmt.Errorf("sparsetable: import key %d: a row of %d words, want %d", key, len(row), words)
		}
		if err != nil {
			return rows, errors.Join(err, flush())
		}
		if !t.trained(row) {
			continue
		}
		if _, again := seen[key]; again || len(keys) >= limit {
			if err := flush(); err != nil {
				return rows, err
			}
		}
		seen[key] = struct{}{}
		keys = append(keys, key)
		data = append(data, row...)
	}
}

func (t *ssd) importRows(ctx context.Context, keys []uint64, data []float32) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	ws, err := t.pullKeys(ctx, keys, PullCreate)
	if err != nil {
		return err
	}
	for i := range keys {
		copy(ws.Row(i), data[i*t.layout.Words():])
	}
	ws.Release()
	return nil
}

// Expire implements Table. It goes through all slots: dirty rows are written
// along the way, so that every bucket shows whether its rows are to go. Rows in
// the cache that are to go leave it, and placeholders.
func (t *ssd) Expire(ctx context.Context, rule ExpiryRule) (rows int64, err error) {
	done, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	condemned := func(row []float32) bool { return rule.Condemns(t.layout.Stats(row)) }
	defer func() {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		t.cache.DropIf(func(e rowcache.Entry) bool {
			if !t.trained(e.Row) {
				return true
			}
			// A dirty one may have an older version in its bucket, where an
			// error kept Expire from getting there.
			return e.Flags&rowcache.Dirty == 0 && condemned(e.Row)
		})
		t.mu.Lock()
		t.mu.stats.Expired += rows
		t.mu.Unlock()
	}()
	drop := func(row []float32) bool {
		if condemned(row) {
			rows++
			return true
		}
		return false
	}
	n, end, err := t.beginScan()
	if err != nil {
		return 0, tableError(err)
	}
	defer end()
	var list []uint32
	for slot := uint32(0); slot < n; slot += uint32(len(list)) {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		list = list[:0]
		for at := slot; at < n && len(list) < rewriteBatch; at++ {
			list = append(list, at)
		}
		t.rewrite.Lock()
		err := t.rewriteSlots(list, drop)
		t.rewrite.Unlock()
		if err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return rows, tableError(err)
		}
	}
	return rows, nil
}
