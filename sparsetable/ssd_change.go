package sparsetable

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// beginScan makes slots stay as they are, so that each row is in one place all
// the time, until end is called, and returns their number. REQUIRES: changing
// is held, so that no row comes which would want more slots.
func (t *ssd) beginScan() (slots uint32, end func(), err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	// On a full device slots stay as they are: reading needs no room.
	if err := t.keepShape(); err != nil && !errors.Is(err, bucketfile.ErrNoSpace) {
		return 0, nil, err
	}
	t.rewrite.scanning++
	return t.index.Slots(), func() {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		t.rewrite.scanning--
	}, nil
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

// Expire implements Table. It goes through all slots: dirty rows are written
// along the way, so that every bucket shows whether its rows are to go. Rows in
// the cache that are to go leave it, and so do placeholders, which is all that
// happens under a rule that condemns nothing.
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
	if !rule.active() {
		return 0, nil // no bucket need be read
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
		before := t.rewrite.counts.droppedRows
		t.rewrite.urgent = true // rows go
		err := t.rewriteSlots(list, condemned)
		t.rewrite.urgent = false
		rows += t.rewrite.counts.droppedRows - before
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
