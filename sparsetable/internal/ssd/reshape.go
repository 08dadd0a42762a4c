package ssd

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/slots"
)

// The number of slots depends on the number of rows, and the size of buckets and filters on the
// available memory (plan.Shape). Code that evicts rows first splits some slots, enough to keep up
// with new rows (keepShape). The background writer does the rest (reshape): splits that pinned rows
// prevented, and splits or merges that became necessary because rows were dropped or the budget was
// changed.

const (
	// splitStep is the least number of buckets that may be split before rewrite is released; that
	// takes some milliseconds of reads.
	splitStep = 256
	// If many slots are missing, 1/splitShare of them may be split at a time: rows also leave the
	// cache without a split, and the number of slots must not fall behind for good.
	splitShare = 16
)

// splitsAtOnce is how many buckets may be split at a time in a table of that many rows. REQUIRES:
// rewrite is held.
func (t *Table) splitsAtOnce(rows int64) int { return max(splitStep, t.slotsWanted(rows)/splitShare) }

// keepShape splits slots as the number of rows requires. It splits all slots without a bucket,
// which costs nothing. Of the others it splits up to twice as many as one step of evictions makes
// necessary, or more if many are missing. It leaves for later what exceeds a step of writing.
// REQUIRES: rewrite is held.
func (t *Table) keepShape() error {
	if err := t.keepShapeFor(t.totalRows()); !errors.Is(err, errSpaceUnchecked) {
		return err
	}
	return nil
}

// keepShapeFor is keepShape for another number of rows; it returns errSpaceUnchecked if it has to be called
// again.
func (t *Table) keepShapeFor(rows int64) error {
	if t.rewrite.scanning > 0 || t.opts.ReadOnly {
		return nil
	}
	if err := t.retarget(rows); err != nil {
		return err
	}
	_, err := t.split(rows, max(t.splitsAtOnce(rows), 2*int(t.evictStep())/t.index.TargetRows()))
	t.countRoom()
	return err
}

// reshape splits or merges a batch of slots if there are too few or too many. It reports whether
// there is more to do and room to do it.
func (t *Table) reshape() (more bool, err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if t.rewrite.scanning > 0 || t.opts.ReadOnly {
		return false, nil
	}
	rows := t.totalRows()
	if err := t.retarget(rows); err != nil {
		return false, err
	}
	if t.tooManySlots() {
		return t.mergeSlots()
	}
	before := t.index.Slots()
	done, err := t.split(rows, t.splitsAtOnce(rows))
	t.countRoom()
	if errors.Is(err, errSpaceUnchecked) {
		return true, nil
	}
	return !done && t.index.Slots() > before, err
}

// retarget sets the mean size of buckets for a table of that many rows, and shrinks the filters if
// the index would take too much memory. It leaves the filters alone while a snapshot has yet to
// write them. REQUIRES: rewrite is held.
func (t *Table) retarget(rows int64) error {
	target, filterBytes := t.plan.Shape.Target(rows, t.plan.IndexLimits())
	t.indexMu.Lock()
	t.index.SetTargetRows(target)
	t.indexMu.Unlock()
	t.indexMu.RLock()
	smaller := filterBytes < t.index.FilterBytes() && !t.index.Capturing()
	t.indexMu.RUnlock()
	if !smaller {
		t.warnOfFilters()
		return nil
	}
	return t.shrinkFilters()
}

// shrinkFilters halves the filters, or drops them, and gives their memory to the cache. REQUIRES:
// rewrite is held.
func (t *Table) shrinkFilters() error {
	t.indexMu.Lock()
	err := t.index.ShrinkFilters()
	t.indexMu.Unlock()
	t.indexRoom.Store(0) // it was computed for larger filters
	if err == nil {
		err = t.giveCache()
	}
	return err
}

// warnOfFilters logs, once, that the filters are too small to be worth their memory.
// REQUIRES: rewrite is held, or the table is being opened.
func (t *Table) warnOfFilters() {
	f := t.index.FilterBytes()
	few := f < t.plan.Shape.Floor() && t.totalRows() > 0
	if few && !t.rewrite.fewFilters && !t.opts.Brief {
		t.opts.Logger.Warn("sparsetable: the memory budget has no room for Bloom filters, so a key that is new to the table costs a read; give the table more memory (sparse_table.memory_bytes)",
			"budget_bytes", t.opts.MemoryBytes, "rows", t.totalRows(), "slots", t.index.Slots(), "filter_bytes_per_slot", f)
	}
	t.rewrite.fewFilters = few
}

// giveCache gives free memory to the cache. REQUIRES: rewrite is held.
func (t *Table) giveCache() error {
	err := t.reserve(0)
	if errors.Is(err, errNoVictims) || errors.Is(err, errSpaceUnchecked) {
		return nil // the cache was over its limit before: pinned rows keep it from shrinking, or it shrinks later
	}
	return err
}

// tryShrinkFilters shrinks the filters, but not below least bytes a slot, to make room for rows that must
// be in memory. It reports whether it could.
func (t *Table) tryShrinkFilters(least int) bool {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	t.indexMu.RLock()
	f := t.index.FilterBytes()
	can := f > 0 && slots.SmallerFilter(f) >= least && !t.index.Capturing()
	t.indexMu.RUnlock()
	if !can {
		return false
	}
	if err := t.shrinkFilters(); err != nil {
		t.opts.Logger.Warn("sparsetable: the filters could not be made smaller", "error", err)
		return false
	}
	return true
}

// countRoom sets how many rows may be created before the number of slots must be checked.
func (t *Table) countRoom() { t.mayCreate.Store(t.maxRows(int64(t.index.Slots())) - t.totalRows()) }

// admit is called before n rows are created. If there are so few slots that buckets would get too
// large, it splits some. If it cannot, the disk is full, or the budget is too small for the table
// and admit returns a *BudgetError.
func (t *Table) admit(ctx context.Context, n int) error {
	if t.mayCreate.Add(-int64(n)) >= 0 {
		return nil
	}
	return t.inSteps(ctx, func() error { return t.splitFor(n) })
}

// splitFor is admit when there are too few slots. REQUIRES: rewrite is held. It returns errSpaceUnchecked
// if it has to be called again.
func (t *Table) splitFor(n int) error {
	total := t.totalRows() + int64(n)
	if err := t.keepShapeFor(total); err != nil {
		return err
	}
	now := t.maxRows(int64(t.index.Slots()))
	if total <= now {
		t.mayCreate.Add(-int64(n))
		return nil
	}
	if total <= 3*now/2 && total <= t.maxRows(slots.SlotsIn(t.plan.IndexLimit(), 0)) {
		return nil // pinned rows prevent splits for now
	}
	if t.rewrite.unsplit != nil {
		return t.rewrite.unsplit
	}
	need := plan.Load{Rows: total, Slots: int64(t.index.Slots())}
	return t.overBudget(fmt.Sprintf("a table of %d rows", total), max(t.plan.Smallest(need), t.aLittleMore()))
}

// totalRows is an upper bound on the number of rows: those in buckets, and those in
// the cache that may be in no bucket. REQUIRES: rewrite is held.
func (t *Table) totalRows() int64 {
	st := t.cache.Stats()
	return t.rewrite.stored + st.Rows - st.Marked2
}
