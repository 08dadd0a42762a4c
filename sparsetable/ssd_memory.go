package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/slots"
)

// errNoVictims: no row can leave the cache, because all are pinned.
var errNoVictims = errors.New("sparsetable: all rows in memory are pinned")

// budget is how the table's memory is divided.
type budget struct {
	plan plan.Plan
	bulk bulkPlan
	// fitRows is how many rows the cache holds within its present budget. mayCreate
	// is how many rows may be created before the number of slots must be checked,
	// see admit.
	fitRows   atomic.Int64
	mayCreate atomic.Int64
	// borrowed is memory that an Import or a Scan has taken from the cache.
	borrowed atomic.Int64
}

// freeRows is how many more rows the cache takes.
func (b *budget) freeRows(rows int64) int64 { return b.fitRows.Load() - rows }

// overfull is the most rows that a table of that many slots may have. On average
// that is a quarter more a slot than plan.Table.Fits allows, and far fewer than a bucket
// can have.
func (b *budget) overfull(slots int64) int64 {
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

func (t *ssd) memoryParts() memoryParts {
	p := memoryParts{buffers: t.plan.BufferedBytes(), carry: t.plan.CarryBytes, outside: t.outside.Bytes()}
	p.scratch = t.plan.RestBytes() + t.borrowed.Load()
	t.sets.Lock()
	p.sets = t.sets.refs.Held
	t.sets.Unlock()
	t.indexMu.RLock()
	p.index = t.index.Bytes() - t.index.CaptureBytes()
	blocks, lists, pages := t.checkpoints.Memory()
	t.indexMu.RUnlock()
	p.buffers += blocks
	p.catalog = catalog.FixedBytes + max(0, lists+pages-plan.ScratchBytes/2)
	return p
}

// otherBytes is the memory that the table takes besides the cache.
func (t *ssd) otherBytes() int64 { return t.memoryParts().total() }

// cacheLimit is how many bytes the cache may have while extra bytes are needed besides
// what the table holds.
func (t *ssd) cacheLimit(extra int64) int64 {
	return min(t.opts.MemoryBytes-t.otherBytes()-plan.IndexSlackBytes-t.plan.SpareBytes-extra, t.plan.CacheBytes)
}

// reserve limits the cache so that the budget has room for extra bytes besides what
// the table holds. REQUIRES: rewrite is held. Errors: errNoVictims where the cache
// cannot shrink because of pinned rows; errUnpaid where it has to be called again.
func (t *ssd) reserve(extra int64) error {
	limit := t.cacheLimit(extra)
	if err := t.limitWindow(); err != nil {
		return err
	}
	err := t.shrinkCache(limit)
	stuck := errors.Is(err, errNoVictims) || errors.Is(err, bucketfile.ErrNoSpace)
	if st := t.cache.Stats(); stuck && st.MaxBytes == limit && st.Bytes <= limit+t.plan.SpareBytes {
		return nil // the spare bytes are used until the rows are released, see restoreSpare
	}
	return err
}

// limitWindow gives the window of announced passes the part of its memory that the
// filters do not need. REQUIRES: rewrite is held.
func (t *ssd) limitWindow() error {
	o := t.plan.CacheOptions()
	t.indexMu.RLock()
	index := t.index.Bytes() - t.index.CaptureBytes()
	t.indexMu.RUnlock()
	limit := max(0, o.WindowBytes()-max(0, index-t.plan.IndexLimit()))
	if limit == t.rewrite.windowLimit {
		return nil
	}
	t.rewrite.windowLimit = limit
	return t.cache.LimitWindow(limit)
}

// reserveNow is reserve for callers that do not hold rewrite.
func (t *ssd) reserveNow(ctx context.Context, extra int64) error {
	return t.inSteps(ctx, func() error { return t.reserve(extra) })
}

// restoreSpare lets the cache give back memory that it could not give back before
// because of pinned rows.
func (t *ssd) restoreSpare() error {
	if st := t.cache.Stats(); st.Bytes <= st.MaxBytes {
		return nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	_, err := t.cache.Shrink()
	return err
}

// shrinking is how far the cache has come in shrinking, under rewrite.
type shrinking struct {
	bytes int64 // of the cache when it last gave memory back, or grew
	rows  int64 // that have left it since
}

// shrinkCache sets the cache's limit, and makes rows leave until the cache is
// within it. Errors: errNoVictims where pinned rows prevent that; ErrNoSpace where
// dirty rows do, because the disk is full; errUnpaid where as many rows were written as
// may be at a time: the next call goes on from there.
func (t *ssd) shrinkCache(limit int64) error {
	err := t.shrinkStep(limit)
	if !errors.Is(err, errUnpaid) {
		t.rewrite.shrinking = shrinking{}
	}
	return err
}

// shrinkStep is shrinkCache, which ends what is known of its progress.
func (t *ssd) shrinkStep(limit int64) error {
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
		dropped := t.dropClean(int(slab), &t.rewrite.victims) // as many as a slab has, so that a slab's rows can move into their places
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

// limitCache sets the cache's limit, which it may exceed. It fails with errNoVictims where
// even an empty cache is larger. REQUIRES: rewrite is held.
func (t *ssd) limitCache(limit int64) error {
	o := t.plan.CacheOptions()
	t.fitRows.Store(o.FitRowsIn(limit))
	if t.cache.SetMaxBytes(limit) != nil {
		return errNoVictims
	}
	return nil
}

// maxShrinkSlabs is how many slabs' rows leave without any memory given back before
// shrinking fails. Pinned rows may prevent that a slab is emptied, however many other
// rows leave.
const maxShrinkSlabs = 4

// takeRefs returns n zero references, from the pool if possible, and makes room for
// the scratch memory of a Pull of that many keys. REQUIRES: changing is held.
func (t *ssd) takeRefs(ctx context.Context, n int) ([]uint32, error) {
	t.sets.Lock()
	p := &t.sets.refs
	refs := p.Take(n)
	if refs == nil {
		p.DropSmaller(n)
	}
	t.sets.Unlock()
	if refs != nil {
		return refs, nil
	}
	room := roomForKeys(n)
	need := 4 * int64(room)
	if more := int64(room - cap(t.pull.hashes)); n > cap(t.pull.hashes) {
		need += more * pullBytesPerKey
	}
	take := func() error {
		err := t.reserve(need)
		if err == nil { // before somebody else lets the cache have the memory again
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
		if errors.Is(err, errNoVictims) {
			err = t.pullOverBudget(n, t.cache.Stats().InFlight+int64(n))
		}
		return nil, err
	}
	if cap(t.pull.hashes) < n {
		t.pull.hashes = make([]uint64, 0, room)
		t.pull.missing = make([]uint64, 0, room)
		t.pull.absent = make([]uint32, 0, room)
	}
	return make([]uint32, n, room), nil
}

// roomForKeys is the capacity of the lists for a Pull of n keys. The passes of a job
// have about the same number of keys. Without some room to spare, a pass with a few
// keys more than all before it would need longer lists, and a cache full of pinned
// rows may have no room for them.
func roomForKeys(n int) int { return n + n/16 }

// windowPause is for how many Pulls there is no window of announced passes after
// one that needed its memory, because the next ones are likely to need it, too.
const windowPause = 16

// makeMoreRoom tries to make room where no row can leave, and reports whether
// trying again is worth while. It frees the window of announced passes first. Then
// it makes the filters smaller, as far as they stay worth their memory. Where that
// is not possible, it waits once for a snapshot that is being written, because that
// holds memory and prevents that filters are made smaller. It drops the filters only
// if no other working set is pinned, and the caller cannot pull fewer keys; otherwise the
// caller can release a set, or divide the keys, and try again. REQUIRES: changing is held.
func (t *ssd) makeMoreRoom(ctx context.Context, waited *bool) bool {
	t.pull.windowPause = windowPause
	freed, err := t.cache.YieldWindow()
	if err != nil {
		t.opts.Logger.Warn("sparsetable: give up what is known of announced passes", "error", err)
	}
	if freed || t.economize(t.plan.Shape.Floor()) {
		return true
	}
	if !*waited && t.checkpoints.Running() != nil && t.saving.Acquire(ctx) == nil {
		t.saving.Release()
		*waited = true
		return true
	}
	alone := t.sets.number() == 0
	return alone && !t.pull.divisible && t.economize(0)
}

// restoreWindow allows a window of announced passes again some Pulls after one that
// needed its memory. REQUIRES: changing is held.
func (t *ssd) restoreWindow() {
	if p := &t.pull; p.windowPause > 0 {
		if p.windowPause--; p.windowPause == 0 {
			t.cache.RestoreWindow()
		}
	}
}

// pinnedWith is how many rows would be pinned in all if a Pull that has refs also
// got the rows whose references are still 0. REQUIRES: changing is held.
func (t *ssd) pinnedWith(refs []uint32) int64 {
	rows := t.cache.Stats().InFlight
	for _, ref := range refs {
		if ref == 0 {
			rows++
		}
	}
	return rows
}

// pullOverBudget returns the error of a Pull of n keys that did not fit; pinned is
// how many rows would be pinned with it in all.
func (t *ssd) pullOverBudget(n int, pinned int64) error {
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
	if sets > 0 || t.pull.divisible { // filters do not make way for several sets, nor for a set that can be smaller
		other += t.filtersOf(rows + pinned)
	}
	need := t.plan.Smallest(plan.Load{Rows: rows + pinned, Slots: slotsNow, Resident: pinned, Other: other})
	if need <= t.opts.MemoryBytes {
		// The estimate says that this budget is enough, but it does not know that
		// pinned rows are scattered over the slabs, so that the cache can give back
		// little memory.
		need = t.aLittleMore() + other
	}
	e := &BudgetError{
		What: fmt.Sprintf("pinning %d rows", pinned), NeedBytes: need, BudgetBytes: t.opts.MemoryBytes,
		PinnedRows: pinned, FitRows: t.fitPull(n, rows, slotsNow),
	}
	if sets == 0 { // n keys do not fit, whatever the estimate says
		e.FitRows = min(e.FitRows, n-max(n/4, 1))
	}
	if e.FitRows < 1 { // under a tight budget the estimate is too low
		e.FitRows = n / 2
	}
	return e
}

// filtersOf is the memory of the smallest filters that are worth it in a table of
// that many rows.
func (t *ssd) filtersOf(rows int64) int64 {
	t.indexMu.RLock()
	defer t.indexMu.RUnlock()
	n := max(int64(t.index.Slots()), (rows+int64(t.index.TargetRows())-1)/int64(t.index.TargetRows()))
	return slots.BytesFor(slots.Options{TargetRows: 1, FilterBytes: t.plan.Shape.Floor()}, n) - slots.BytesFor(slots.Options{TargetRows: 1}, n)
}

// fitPull estimates how many of n keys a Pull may have while no other working set
// is pinned, for a table of that many rows and slots.
func (t *ssd) fitPull(n int, rows, slotsNow int64) int {
	t.indexMu.RLock()
	keepFilters := t.pull.divisible && t.index.FilterBytes() > 0
	t.indexMu.RUnlock()
	return sort.Search(n, func(i int) bool { // the first i for which i+1 keys do not fit
		keys, room := int64(i+1), int64(roomForKeys(i+1))
		other := 4*room + max(room, int64(cap(t.pull.hashes)))*pullBytesPerKey
		if keepFilters {
			other += t.filtersOf(rows + keys)
		}
		return !t.plan.Fits(t.opts.MemoryBytes, plan.Load{Rows: rows + keys, Slots: slotsNow, Resident: keys, Other: other})
	})
}

// aLittleMore is the budget to try next where the present one should be enough, but
// was not.
func (t *ssd) aLittleMore() int64 { return t.opts.MemoryBytes + max(t.opts.MemoryBytes/128, 16<<10) }
