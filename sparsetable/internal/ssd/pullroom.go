package ssd

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/slots"
)

// takeRefs returns a list of n references, from the pool if possible, and makes room for the
// scratch memory of a Pull of that many keys. REQUIRES: changing is held.
func (t *Table) takeRefs(ctx context.Context, n int) ([]uint32, error) {
	t.sets.Lock()
	p := &t.sets.refs
	refs := p.Take(n)
	if refs == nil {
		p.DropSmaller(n)
	}
	t.sets.Unlock()
	room := roomForKeys(n)
	longer := n > cap(t.pull.hashes) // may be true even if the pool had a list, because the list may be longer than the scratch slices
	need := int64(0)
	if refs == nil {
		need += 4 * int64(room)
	}
	if longer {
		need += int64(room-cap(t.pull.hashes)) * pullBytesPerKey
	}
	if need == 0 {
		return refs, nil
	}
	take := func() error {
		err := t.reserve(need)
		if err == nil { // in the same critical section, before the cache can take the memory again
			t.sets.Lock()
			p.Held += need
			t.sets.Unlock()
		}
		return err
	}
	err := t.inSteps(ctx, take)
	for waited := false; errors.Is(err, errNoVictims) && t.makeMoreRoom(ctx, &waited); {
		err = t.inSteps(ctx, take)
	}
	if err != nil {
		if refs != nil {
			t.sets.give(refs)
		}
		if errors.Is(err, errNoVictims) {
			err = t.pullOverBudget(n, t.cache.Stats().InFlight+int64(n))
		}
		return nil, err
	}
	if longer {
		t.pull.hashes = make([]uint64, 0, room)
		t.pull.missing = make([]uint64, 0, room)
		t.pull.absent = make([]uint32, 0, room)
	}
	if refs == nil {
		refs = make([]uint32, n, room)
	}
	return refs, nil
}

// roomForKeys is the capacity of the lists for a Pull of n keys. The passes of a job have about the
// same number of keys. Without spare capacity, a pass with a few more keys than all before it would
// need new lists, and a cache full of pinned rows may have no room for them.
func roomForKeys(n int) int { return n + n/16 }

// windowPause is the number of Pulls without a window of announced passes after a Pull that needed
// the window's memory, because the next Pulls are likely to need it, too.
const windowPause = 16

// makeMoreRoom tries to make room when no row can be evicted, and reports whether another attempt
// is worthwhile. It tries in this order:
//
//   - If the budget is reduced because the process lacks memory, it takes more of what the process
//     can have.
//   - It frees the window of announced passes.
//   - It shrinks the filters, as far as they stay worth their memory.
//   - It waits, once, for a snapshot that is being written, which holds memory and keeps filters
//     from being shrunk.
//   - It drops the filters, but only if no other working set is pinned and the caller cannot pull
//     fewer keys. Otherwise the caller can release a set, or divide the keys, and try again.
//
// REQUIRES: changing is held.
func (t *Table) makeMoreRoom(ctx context.Context, waited *bool) bool {
	if grew, err := t.takeMore(ctx); grew && err == nil {
		return true // the next attempt returns an error, if there is one
	}
	t.pull.windowPause = windowPause
	freed, err := t.cache.YieldWindow()
	if err != nil {
		t.opts.Logger.Warn("sparsetable: the memory of announced passes could not be freed", "error", err)
	}
	if freed || t.tryShrinkFilters(t.plan.Shape.Floor()) {
		return true
	}
	if !*waited && t.checkpoints.Running() != nil && t.saving.Acquire(ctx) == nil {
		t.saving.Release()
		*waited = true
		return true
	}
	alone := t.sets.number() == 0
	return alone && !t.pull.divisible && t.tryShrinkFilters(0)
}

// restoreWindow allows a window of announced passes again, windowPause Pulls after a Pull needed
// its memory. REQUIRES: changing is held.
func (t *Table) restoreWindow() {
	if p := &t.pull; p.windowPause > 0 {
		if p.windowPause--; p.windowPause == 0 {
			t.cache.RestoreWindow()
		}
	}
}

// pinnedWith is the total number of pinned rows if a Pull with refs also got the rows whose
// references are still 0. REQUIRES: changing is held.
func (t *Table) pinnedWith(refs []uint32) int64 {
	rows := t.cache.Stats().InFlight
	for _, ref := range refs {
		if ref == 0 {
			rows++
		}
	}
	return rows
}

// pullOverBudget returns the error of a Pull of n keys that did not fit; pinned is the number of
// rows that would be pinned in all.
func (t *Table) pullOverBudget(n int, pinned int64) *contract.BudgetError {
	listed := int64(roomForKeys(n))
	t.sets.Lock()
	sets := len(t.sets.live)
	for _, ws := range t.sets.live {
		listed += int64(cap(ws.refs))
	}
	t.sets.Unlock()
	t.rewrite.Lock()
	rows, slotsNow := t.rewrite.stored, int64(t.index.Slots())
	t.rewrite.Unlock()
	other := 4*listed + int64(max(roomForKeys(n), cap(t.pull.hashes)))*pullBytesPerKey
	if sets > 0 || t.pull.divisible { // filters are not dropped for one of several sets, nor for a set that can be divided
		other += t.filtersOf(rows + pinned)
	}
	need := t.plan.Smallest(plan.Load{Rows: rows + pinned, Slots: slotsNow, Resident: pinned, Other: other})
	if need <= t.budgetBytes() {
		// The estimate says that this budget is enough. It does not know that pinned rows are
		// scattered over the slabs, so that the cache can give back little memory.
		need = t.aLittleMore() + other
	}
	e := t.overBudget(fmt.Sprintf("pinning %d rows", pinned), need)
	e.PinnedRows, e.FitRows = pinned, t.fitPull(n, rows, slotsNow)
	if sets == 0 { // n keys do not fit, whatever the estimate says
		e.FitRows = min(e.FitRows, n-max(n/4, 1))
	}
	if e.FitRows < 1 { // under a tight budget the estimate is too low
		e.FitRows = n / 2
	}
	return e
}

// filtersOf is the size of the smallest filters worth having in a table of that many rows.
func (t *Table) filtersOf(rows int64) int64 {
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	n := max(int64(t.index.Slots()), (rows+int64(t.index.TargetRows())-1)/int64(t.index.TargetRows()))
	return slots.BytesFor(slots.Options{TargetRows: 1, FilterBytes: t.plan.Shape.Floor()}, n) - slots.BytesFor(slots.Options{TargetRows: 1}, n)
}

// fitPull estimates how many of n keys a Pull may have while no other working set is pinned, in a
// table of that many rows and slots.
func (t *Table) fitPull(n int, rows, slotsNow int64) int {
	t.indexMu.RLock()
	keepFilters := t.pull.divisible && t.index.FilterBytes() > 0
	t.indexMu.RUnlock()
	return sort.Search(n, func(i int) bool { // the first i for which i+1 keys do not fit
		keys, room := int64(i+1), int64(roomForKeys(i+1))
		other := 4*room + max(room, int64(cap(t.pull.hashes)))*pullBytesPerKey
		if keepFilters {
			other += t.filtersOf(rows + keys)
		}
		if t.lacking.Load() > 0 && t.fitIn(t.cacheLimit(other)) < keys+keys/16 {
			return true // the plan was for more memory, so its buffers leave the cache less than the estimate says
		}
		return !t.plan.Fits(t.budgetBytes(), plan.Load{Rows: rows + keys, Slots: slotsNow, Resident: keys, Other: other})
	})
}
