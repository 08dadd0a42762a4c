package ssd

import (
	"context"
	"errors"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/bulk"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/plan"
)

// errNoVictims: no row can leave the cache because all are pinned.
var errNoVictims = errors.New("sparsetable: all rows in memory are pinned")

// cannotShrink reports whether err says that the cache could not shrink: all rows that it would
// evict are pinned, or the disk has no room for dirty ones.
func cannotShrink(err error) bool {
	return errors.Is(err, errNoVictims) || errors.Is(err, bucketfile.ErrNoSpace)
}

// budget is how the table's memory is divided.
type budget struct {
	plan plan.Plan
	bulk bulk.Plan
	// fitRows is how many rows the cache holds within its present budget. mayCreate is how many
	// rows may be created before the number of slots must be checked, see admit.
	fitRows   atomic.Int64
	mayCreate atomic.Int64
	// borrowed is memory that an Import or a Scan has taken from the cache.
	borrowed atomic.Int64
	crowding
	scarcity
}

// freeRows is how many more rows the cache can hold when it has rows.
func (b *budget) freeRows(rows int64) int64 { return b.fitRows.Load() - rows }

// maxRows is the maximum number of rows in a table of that many slots. It allows on average a
// quarter more per slot than plan.Table.Fits, and far fewer than a bucket can have.
func (b *budget) maxRows(slots int64) int64 {
	huge := int64(b.plan.Shape.Huge)
	return slots * (huge + max(1, huge/4))
}

// memoryParts is the memory that the table takes besides the cache, by purpose.
type memoryParts struct {
	buffers, carry, catalog, scratch int64
	index, sets, outside             int64
}

func (p memoryParts) total() int64 {
	return p.buffers + p.carry + p.catalog + p.scratch + p.index + p.sets + p.outside
}

func (t *Table) memoryParts() memoryParts {
	p := memoryParts{buffers: t.plan.BufferedBytes(), outside: t.outside.Bytes()}
	_, p.carry = t.carried.Bytes()
	p.scratch = t.plan.RestBytes() + t.borrowed.Load()
	t.sets.Lock()
	p.sets = t.sets.refs.Held
	t.sets.Unlock()
	t.indexMu.RLock()
	p.index = t.indexBytes()
	blocks, lists, pages := t.checkpoints.Memory()
	t.indexMu.RUnlock()
	p.buffers += blocks
	p.catalog = catalog.FixedBytes + max(0, lists+pages-plan.ScratchBytes/2)
	return p
}

// otherBytes is the memory that the table takes besides the cache.
func (t *Table) otherBytes() int64 { return t.memoryParts().total() }

// takenBytes is the part of the budget that the cache may not have: what the table holds besides
// it, the room set aside for the index, and reserves.
func (t *Table) takenBytes() int64 {
	t.indexMu.RLock()
	awaited := max(0, t.indexRoom.Load()-t.indexBytes())
	t.indexMu.RUnlock()
	return t.otherBytes() + awaited + plan.IndexSlackBytes + t.plan.SpareBytes
}

// cacheLimit is the size in bytes that the cache may have while extra bytes are needed besides what
// the table holds.
func (t *Table) cacheLimit(extra int64) int64 {
	return min(t.budgetBytes()-t.takenBytes()-extra, t.plan.CacheBytes)
}

// fitIn is how many rows the cache holds within limit bytes.
func (t *Table) fitIn(limit int64) int64 {
	o := t.plan.CacheOptions()
	return o.FitRowsIn(limit + min(t.lackingWindow(), o.WindowBytes()))
}

// reserve limits the cache so that the budget has room for extra bytes besides what the table
// holds. REQUIRES: rewrite is held. Errors: errNoVictims if pinned rows keep the cache from
// shrinking; errSpaceUnchecked if reserve has to be called again.
func (t *Table) reserve(extra int64) error {
	limit := t.cacheLimit(extra)
	if err := t.limitWindow(); err != nil {
		return err
	}
	err := t.shrinkCache(limit)
	if st := t.cache.Stats(); cannotShrink(err) && st.MaxBytes == limit && st.Bytes <= limit+t.plan.SpareBytes {
		return nil // the cache uses the spare bytes until the rows are released, see restoreSpare
	}
	return err
}

// limitWindow limits the window of announced passes to the part of its memory that is available and
// that the filters do not need. REQUIRES: rewrite is held.
func (t *Table) limitWindow() error {
	o := t.plan.CacheOptions()
	t.indexMu.RLock()
	index := t.indexBytes()
	t.indexMu.RUnlock()
	limit := max(0, o.WindowBytes()-max(0, index-t.plan.IndexLimit())-t.lackingWindow())
	if limit == t.rewrite.windowLimit {
		return nil
	}
	t.rewrite.windowLimit = limit
	return t.cache.LimitWindow(limit)
}

// reserveNow is reserve for callers that do not hold rewrite.
func (t *Table) reserveNow(ctx context.Context, extra int64) error {
	return t.inSteps(ctx, func() error { return t.reserve(extra) })
}

// restoreSpare shrinks the cache after pinned rows have kept it from giving back memory.
func (t *Table) restoreSpare() error {
	if st := t.cache.Stats(); st.Bytes <= st.MaxBytes {
		return nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	_, err := t.cache.Shrink()
	return err
}

// shrinking is the cache's progress in shrinking. Guarded by rewrite.
type shrinking struct {
	bytes int64 // size of the cache when it last gave memory back, or grew
	rows  int64 // evicted since
}

// shrinkCache sets the cache's limit, and evicts rows until the cache is within it. Errors:
// errNoVictims if pinned rows prevent that; ErrNoSpace if dirty rows do because the disk is full;
// errSpaceUnchecked if it has written as many rows as it may at a time: the next call continues from there.
func (t *Table) shrinkCache(limit int64) error {
	err := t.shrinkStep(limit)
	if !errors.Is(err, errSpaceUnchecked) {
		t.rewrite.shrinking = shrinking{}
	}
	return err
}

// shrinkStep is shrinkCache without the reset of its progress.
func (t *Table) shrinkStep(limit int64) error {
	if err := t.limitCache(limit); err != nil {
		return err
	}
	s := &t.rewrite.shrinking
	_, shift, _ := t.cache.Slabs()
	for slab := int64(1) << shift; s.rows < maxShrinkSlabs*slab; {
		kept, err := t.cache.Shrink()
		if kept || err != nil {
			return err
		}
		if now := t.cache.Stats().Bytes; now != s.bytes {
			*s = shrinking{bytes: now}
		}
		dropped := t.dropClean(int(slab), &t.rewrite.victims) // a slab's worth, so that the rows of one slab can move into their places
		if dropped == 0 {
			if err := t.mayWrite(); err != nil {
				return err
			}
			dropped, err = t.evict(int(min(slab, t.evictStep())))
			if err != nil && (dropped == 0 || !errors.Is(err, bucketfile.ErrNoSpace)) {
				return err
			}
		}
		if dropped == 0 {
			return errNoVictims
		}
		s.rows += int64(dropped)
	}
	return errNoVictims
}

// limitCache sets the cache's limit, which the cache may still exceed. It fails with errNoVictims
// if even an empty cache is larger; the limit is then as before. REQUIRES: rewrite is held.
func (t *Table) limitCache(limit int64) error {
	if t.cache.SetMaxBytes(limit) != nil {
		return errNoVictims
	}
	t.fitRows.Store(t.fitIn(limit))
	return nil
}

// maxShrinkSlabs is how many slabs' worth of rows are evicted without freeing any memory before
// shrinking fails. However many rows leave, pinned rows may keep every slab from becoming empty.
const maxShrinkSlabs = 4

// aLittleMore is the next budget to suggest when the present one should suffice but did not.
func (t *Table) aLittleMore() int64 { return t.budgetBytes() + max(t.opts.MemoryBytes/128, 16<<10) }

// borrowSteps is the number of steps in which borrow takes its memory. Dirty rows are evicted for
// it, so the space on disk is checked after each step.
const borrowSteps = 16

// borrow takes bytes of memory from the cache until giveBack. It returns errNoVictims if the cache
// cannot give that much.
func (t *Table) borrow(ctx context.Context, bytes int64) error {
	for i := range int64(borrowSteps) {
		if err := t.reserveNow(ctx, bytes*(i+1)/borrowSteps); err != nil {
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
	t.borrowed.Add(bytes)
	return nil
}

// giveBack returns borrowed memory to the cache.
func (t *Table) giveBack(bytes int64) {
	t.borrowed.Add(-bytes)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	// The cache may grow again, which cannot fail. If it has to shrink for another reason and
	// cannot, the next call that needs room returns the error.
	_ = t.reserve(0)
}

// borrowUpTo borrows bytes, or half of them, or a quarter and so on, but not less than least. It
// returns how many it borrowed, or 0 if the cache cannot give even least.
func (t *Table) borrowUpTo(ctx context.Context, bytes, least int64) (int64, error) {
	for ; bytes >= least; bytes /= 2 {
		err := t.borrow(ctx, bytes)
		if err == nil {
			return bytes, nil
		}
		if !errors.Is(err, errNoVictims) {
			return 0, err
		}
	}
	return 0, nil
}
