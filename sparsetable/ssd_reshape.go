package sparsetable

import (
	"errors"
	"fmt"

	"aibox/sparsetable/internal/slots"
)

// The number of slots follows the number of rows, and the size of buckets and
// filters the memory that there is (bucketShape). Whoever lets rows go splits
// some slots before, enough to keep up with rows that come (keepShape). What is
// due beyond that, because pinned rows were in the way, rows were dropped or the
// budget is another one than that under which the table was made, is the
// background writer's (reshape).

// splitStep is how many buckets are split at a time, at least, before others get
// a turn: some milliseconds of reads.
const splitStep = 256

// keepShape splits the slots without bucket that the rows want to be split,
// which costs nothing, and of the others up to twice as many as a step of rows
// that leave the cache makes necessary. REQUIRES: rewrite is held.
func (t *ssd) keepShape() error { return t.keepShapeFor(t.totalRows()) }

// keepShapeFor is keepShape for another number of rows.
func (t *ssd) keepShapeFor(rows int64) error {
	if t.rewrite.scanning > 0 || t.readOnly {
		return nil
	}
	if err := t.retarget(rows); err != nil {
		return err
	}
	_, err := t.split(rows, max(splitStep, 2*int(t.evictStep())/t.index.TargetRows()))
	t.countRoom()
	return err
}

// reshape splits or merges a batch of slots, if they are not as many as they
// should be, and reports whether more are due that there is room for.
func (t *ssd) reshape() (more bool, err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if t.rewrite.scanning > 0 || t.readOnly {
		return false, nil
	}
	if err := t.retarget(t.totalRows()); err != nil {
		return false, err
	}
	if t.tooManySlots() {
		return t.mergeSlots()
	}
	before := t.index.Slots()
	done, err := t.split(t.totalRows(), rewriteBatch)
	t.countRoom()
	return !done && t.index.Slots() > before, err
}

// retarget sets the mean size of buckets for a table of that many rows, and
// makes filters smaller where index and filters would take too much. Filters
// that a snapshot has yet to write wait. REQUIRES: rewrite is held.
func (t *ssd) retarget(rows int64) error {
	target, filterBytes := t.plan.shape.target(rows, t.plan.indexLimit())
	t.indexMu.Lock()
	t.index.SetTargetRows(target)
	t.indexMu.Unlock()
	t.indexMu.RLock()
	smaller := filterBytes < t.index.FilterBytes() && !t.index.Capturing()
	t.indexMu.RUnlock()
	if !smaller {
		return nil
	}
	return t.shrinkFilters()
}

// shrinkFilters halves the filters, or drops them, and lets the cache have the
// memory. REQUIRES: rewrite is held.
func (t *ssd) shrinkFilters() error {
	t.indexMu.Lock()
	err := t.index.ShrinkFilters()
	t.indexMu.Unlock()
	if err == nil {
		err = t.giveCache()
	}
	return err
}

// giveCache lets the cache have memory that became free. REQUIRES: rewrite is
// held.
func (t *ssd) giveCache() error {
	err := t.reserve(0)
	if errors.Is(err, errNoVictims) {
		return nil // it was over its limit before, and pinned rows keep it there
	}
	return err
}

// economize makes room for rows that must be in memory at the expense of the
// filters, and reports whether there was some to be made.
func (t *ssd) economize() bool {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	t.indexMu.RLock()
	can := t.index.FilterBytes() > 0 && !t.index.Capturing()
	t.indexMu.RUnlock()
	if !can {
		return false
	}
	if err := t.shrinkFilters(); err != nil {
		t.log.Warn("sparsetable: the filters could not be made smaller", "error", err)
		return false
	}
	return true
}

// overfull is how many rows so many slots hold at most, on average a quarter
// more than the largest that fitsSSD allows, far from what a bucket can have.
func (t *ssd) overfull(slots int64) int64 {
	huge := int64(t.plan.shape.huge)
	return slots * (huge + max(1, huge/4))
}

// countRoom notes how many rows may be created before slots must be looked at.
func (t *ssd) countRoom() { t.mayCreate.Store(t.overfull(int64(t.index.Slots())) - t.totalRows()) }

// admit lets n rows be created. Where splits are so far behind that buckets
// would get too large, it catches up with some; where that cannot be done
// the budget is too small for the table.
func (t *ssd) admit(n int) error {
	if t.mayCreate.Add(-int64(n)) >= 0 {
		return nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	total := t.totalRows() + int64(n)
	if err := t.keepShapeFor(total); err != nil {
		return err
	}
	now := t.overfull(int64(t.index.Slots()))
	if total <= now {
		t.mayCreate.Add(-int64(n))
		return nil
	}
	if total <= 3*now/2 && total <= t.overfull(slots.SlotsIn(t.plan.indexLimit(), 0)) {
		return nil // splits are held up by pinned rows, for a while
	}
	need := load{rows: total, slots: int64(t.index.Slots())}
	return t.overBudget(fmt.Sprintf("a table of %d rows", total), max(smallestSSD(t.layout, t.unit, t.opts.SSD, need), t.aLittleMore()))
}

// totalRows is an upper bound of the rows that there are: those in buckets and
// those in the cache that may be new. REQUIRES: rewrite is held.
func (t *ssd) totalRows() int64 {
	st := t.cache.Stats()
	return t.rewrite.stored + st.Rows - st.Marked2
}
