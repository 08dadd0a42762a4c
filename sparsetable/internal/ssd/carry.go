package ssd

import (
	"context"

	"aibox/sparsetable/internal/carry"
)

// carryBatch is the number of carried buckets that are handled per acquisition of rewrite, some 200
// microseconds of work; fewer in small tables.
const carryBatch = 64

// handOver passes the buckets of a released set to the background writer.
func (t *Table) handOver(c *carry.Buckets) {
	if c == nil {
		return
	}
	if c.Chunks() == 0 {
		t.elevator.Drop(c)
		return
	}
	t.carried.HandOver(c)
	t.wake()
}

// writeCarries writes the buckets of all sets that are released by now. It returns false if there
// are none.
func (t *Table) writeCarries(ctx context.Context) (worked bool, err error) {
	for range t.carried.Waiting() { // sets released meanwhile wait, because other work comes first
		c := t.carried.Next()
		if c == nil {
			break
		}
		worked = true
		if err := t.writeCarried(ctx, c); err != nil {
			return worked, err
		}
	}
	return worked, nil
}

// writeCarried merges the rows of a released set into the buckets that it carried.
func (t *Table) writeCarried(ctx context.Context, c *carry.Buckets) error {
	defer t.elevator.Drop(c)
	if !t.outgrowsCache() {
		return nil
	}
	for c.Chunks() > 0 {
		for rest := c.First(); rest != nil; {
			var err error
			if rest, err = t.writeCarriedBatch(rest); err != nil {
				return err
			}
			if err := t.keepSpace(ctx); err != nil {
				return err
			}
		}
		t.carried.DropFirst(c)
	}
	return nil
}

// outgrowsCache reports whether buckets have more rows than three quarters of what the cache holds,
// so that rows will have to leave it.
func (t *Table) outgrowsCache() bool {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.rewrite.stored > t.fitRows.Load()/4*3
}

// writeCarriedBatch writes the first carried buckets of chunk and returns the
// others; nil at the end. It skips buckets that were superseded meanwhile, and
// slots whose dirty rows are all needed again soon.
func (t *Table) writeCarriedBatch(chunk []byte) (rest []byte, err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	for range min(carryBatch, t.evictStep()) {
		var c carry.Copy
		var ok bool
		if c, chunk, ok = carry.Cut(chunk); !ok {
			return nil, nil
		}
		if !t.index.LiesAt(c.Slot, uint64(c.Location)) || t.cache.LeavingOfSlot(uint64(c.Slot), t.index.MaskOf(c.Slot)) == 0 {
			continue
		}
		b := t.files.RebuildBucket(c.Slot, c.Rows, c.Entries)
		if err := t.rewriteSlot(c.Slot, &b, nil); err != nil {
			return nil, err
		}
	}
	return chunk, nil
}
