package ssd

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/rowcache"
)

// beginScan keeps slots from being split or merged until end is called, so that each row stays in
// the same slot. It returns the number of slots. REQUIRES: changing is held, so that no rows are
// created that would need more slots.
func (t *Table) beginScan() (slots uint32, end func(), err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	// On a full device the slots are not split, which does no harm: reading needs no room.
	if err := t.keepShape(); err != nil && !errors.Is(err, bucketfile.ErrNoSpace) {
		return 0, nil, err
	}
	return t.index.Slots(), t.rewrite.scan(), nil
}

// change begins Import, Expire and similar calls; the caller calls end when it is done.
func (t *Table) change(ctx context.Context) (end func(), err error) {
	if t.opts.ReadOnly {
		return nil, contract.ErrReadOnly
	}
	if end, err = t.inFlight.BeginLocked(ctx, t.changing, t.saving); err != nil {
		return nil, err
	}
	n := t.sets.number()
	err = t.failure()
	if n > 0 {
		err = fmt.Errorf("%w: %d", contract.ErrPinned, n)
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Expire implements Table. It goes through all slots and rewrites them with their
// dirty rows, without the rows that the rule expires. It also drops the expired
// rows from the cache, and the placeholders. Under a rule that expires nothing, it
// only drops the placeholders.
func (t *Table) Expire(ctx context.Context, rule contract.ExpiryRule) (rows int64, err error) {
	done, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	expired := func(row []float32) bool { return rule.Expires(t.layout.Stats(row)) }
	defer func() {
		t.rewrite.Lock()
		defer t.rewrite.Unlock()
		t.cache.DropIf(func(e rowcache.Entry) bool {
			if !t.trained(e.Row) {
				return true
			}
			// An expired row that is still dirty is kept: an error ended Expire before it reached
			// the row's slot, whose bucket may have an older version of the row.
			return e.Flags&rowcache.Dirty == 0 && expired(e.Row)
		})
		t.sets.Lock()
		t.sets.stats.Expired += rows
		t.sets.Unlock()
	}()
	if rule.UnseenDays == 0 && rule.MinShow <= 0 {
		return 0, nil // no bucket need be read
	}
	// A dropped row must not come back from a delta file, see checkpoint.Saved.
	t.checkpoints.Restart()
	n, end, err := t.beginScan()
	if err != nil {
		return 0, apierr.Of(err)
	}
	defer end()
	var list []uint32
	for slot := uint32(0); slot < n; slot += uint32(len(list)) {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		list = list[:0]
		t.rewrite.Lock()
		most := int(min(rewriteBatch, t.evictStep()))
		for at := slot; at < n && len(list) < most; at++ {
			list = append(list, at)
		}
		before := t.rewrite.counts.droppedRows
		t.rewrite.urgent = true // dropping rows makes room
		err := t.rewriteSlots(list, expired)
		t.rewrite.urgent = false
		rows += t.rewrite.counts.droppedRows - before
		t.rewrite.Unlock()
		if err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return rows, apierr.Of(err)
		}
	}
	return rows, nil
}
