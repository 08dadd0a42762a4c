package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
)

// errNoVictims: every cached row is pinned.
var errNoVictims = errors.New("sparsetable: all rows in memory are pinned")

// memoryParts is what the table holds in memory besides the cache, by purpose.
type memoryParts struct {
	buffers, carry, catalog, scratch int64
	index, sets, outside             int64
}

func (p memoryParts) total() int64 {
	return p.buffers + p.carry + p.catalog + p.scratch + p.index + p.sets + p.outside
}

func (t *ssd) memoryParts() memoryParts {
	p := memoryParts{buffers: t.plan.bufferedBytes() + t.snapBytes.Load(), carry: t.plan.carryBytes, outside: t.outside.bytes()}
	p.scratch = t.plan.fixedBytes - t.plan.bufferedBytes() - t.plan.carryBytes - catalog.FixedBytes + t.borrowed.Load()
	t.mu.Lock()
	p.sets = t.mu.refs.held
	t.mu.Unlock()
	t.indexMu.RLock()
	capture := t.index.CaptureBytes()
	p.index = t.index.Bytes() - capture
	t.indexMu.RUnlock()
	lists := t.catalog.MemoryBytes() - catalog.FixedBytes + capture
	p.catalog = catalog.FixedBytes + max(0, lists-ssdScratchBytes/2)
	return p
}

// otherBytes is what the table holds in memory besides the cache.
func (t *ssd) otherBytes() int64 { return t.memoryParts().total() }

// reserve makes the cache leave room for extra bytes. REQUIRES: rewrite is
// held. Errors: errNoVictims where pinned rows are in the way.
func (t *ssd) reserve(extra int64) error {
	limit := min(t.opts.MemoryBytes-t.otherBytes()-indexSlackBytes-t.plan.spareBytes-extra, t.plan.cacheBytes)
	err := t.shrinkCache(limit)
	stuck := errors.Is(err, errNoVictims) || errors.Is(err, bucketfile.ErrNoSpace)
	if st := t.cache.Stats(); stuck && st.MaxBytes == limit && st.Bytes <= limit+t.plan.spareBytes {
		return nil // until they are released, see restoreSpare
	}
	return err
}

// reserveNow is reserve for callers that do not hold rewrite.
func (t *ssd) reserveNow(extra int64) error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.reserve(extra)
}

// restoreSpare lets the cache give back a slab that pinned rows kept it from
// giving back before, if they no longer do.
func (t *ssd) restoreSpare() error {
	if st := t.cache.Stats(); st.Bytes <= st.MaxBytes {
		return nil
	}
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	_, err := t.cache.Shrink()
	return err
}

// shrinkCache makes limit the most that the cache takes, and makes rows leave
// until it keeps to it. Errors: errNoVictims where pinned rows are in the way,
// ErrNoSpace where dirty rows are, on a full disk.
func (t *ssd) shrinkCache(limit int64) error {
	o := t.plan.cacheOptions(t.layout, t.opts.SSD)
	t.fitRows.Store(o.FitRowsIn(limit))
	if err := t.cache.SetMaxBytes(limit); err != nil {
		return errNoVictims // not even an empty cache would do
	}
	bytes := t.cache.Stats().Bytes
	for left := maxShrinkSteps; left > 0; left-- {
		kept, err := t.cache.Shrink()
		if kept || err != nil {
			return err
		}
		if now := t.cache.Stats().Bytes; now < bytes {
			bytes, left = now, maxShrinkSteps
		}
		_, shift, _ := t.cache.Slabs()
		dropped := t.dropClean(1<<shift, &t.rewrite.victims) // as many as a slab has, to move into their places
		if dropped == 0 {
			dropped, err = t.evict(1 << shift)
			if err != nil && (dropped == 0 || !errors.Is(err, bucketfile.ErrNoSpace)) {
				return err
			}
		}
		if dropped == 0 {
			return errNoVictims
		}
	}
	return errNoVictims
}

// maxShrinkSteps are the steps without a slab given back: pinned rows may keep a
// slab from being emptied however many others leave.
const maxShrinkSteps = 4

// takeRefs returns n zeros, from the pool if possible, and makes room for what
// a Pull of as many keys works with. REQUIRES: changing is held.
func (t *ssd) takeRefs(ctx context.Context, n int) ([]uint32, error) {
	t.mu.Lock()
	p := &t.mu.refs
	for i, r := range p.idle {
		if cap(r) >= n && cap(r) <= 2*n {
			last := len(p.idle) - 1
			p.idle[i] = p.idle[last]
			p.idle = p.idle[:last]
			t.mu.Unlock()
			r = r[:n]
			clear(r)
			return r, nil
		}
	}
	t.mu.Unlock()
	need := 4 * int64(n)
	if more := int64(n - cap(t.pull.hashes)); more > 0 {
		need += more * pullBytesPerKey
	}
	err := t.reserveNow(need)
	for waited := false; errors.Is(err, errNoVictims) && t.makeMoreRoom(ctx, &waited); {
		err = t.reserveNow(need)
	}
	if err != nil {
		if errors.Is(err, errNoVictims) {
			err = t.pullOverBudget(n, t.cache.Stats().InFlight+int64(n))
		}
		return nil, err
	}
	if cap(t.pull.hashes) < n {
		t.pull.hashes = make([]uint64, 0, n)
		t.pull.missing = make([]uint64, 0, n)
		t.pull.absent = make([]uint32, 0, n)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.held += need
	return make([]uint32, n), nil
}

// makeMoreRoom makes room where no row can leave, and reports whether it did.
// Filters get smaller; and a snapshot being written, which holds memory and keeps
// filters as they are, is waited for, once. REQUIRES: changing is held.
func (t *ssd) makeMoreRoom(ctx context.Context, waited *bool) bool {
	if t.economize() {
		return true
	}
	if *waited || t.snap.Load() == nil || acquire(ctx, t.saving) != nil {
		return false
	}
	<-t.saving
	*waited = true
	return true
}

// giveRefs takes references back.
func (t *ssd) giveRefs(refs []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := &t.mu.refs; len(p.idle) < maxIdleRefs {
		p.idle = append(p.idle, refs)
	} else {
		p.held -= 4 * int64(cap(refs))
	}
}

// pinnedWith is how many rows are pinned in all when a Pull has those of refs, and
// those of which it has none yet. REQUIRES: changing is held.
func (t *ssd) pinnedWith(refs []uint32) int64 {
	rows := t.cache.Stats().InFlight
	for _, ref := range refs {
		if ref == 0 {
			rows++
		}
	}
	return rows
}

// pullOverBudget is the error of a Pull of n keys that did not fit, with which
// that many rows would be pinned.
func (t *ssd) pullOverBudget(n int, pinned int64) error {
	listed := int64(n)
	t.mu.Lock()
	sets := len(t.mu.live)
	for _, ws := range t.mu.live {
		listed += int64(len(ws.refs))
	}
	t.mu.Unlock()
	t.rewrite.Lock()
	rows, slotsNow := t.rewrite.stored, int64(t.index.Slots())
	t.rewrite.Unlock()
	other := 4*listed + int64(max(n, cap(t.pull.hashes)))*pullBytesPerKey
	need := smallestSSD(t.layout, t.unit, t.opts.SSD, load{rows: rows + pinned, slots: slotsNow, resident: pinned, other: other})
	if need <= t.opts.MemoryBytes {
		// Pinned rows lie scattered, so that little of the cache can be given back
		// for what Pulls work with.
		need = t.aLittleMore() + other
	}
	e := &BudgetError{
		What: fmt.Sprintf("pinning %d rows", pinned), NeedBytes: need, BudgetBytes: t.opts.MemoryBytes,
		PinnedRows: pinned, FitRows: t.fitPull(n, rows, slotsNow),
	}
	if sets == 0 { // so many do not fit, whatever the estimate says
		e.FitRows = min(e.FitRows, n-max(n/4, 1))
	}
	if e.FitRows < 1 { // of a tight budget the estimate says too little
		e.FitRows = n / 2
	}
	return e
}

// fitPull is how many of n keys a Pull may have while no other set is pinned, of
// a table of that many rows in so many slots.
func (t *ssd) fitPull(n int, rows, slotsNow int64) int {
	return sort.Search(n, func(i int) bool { // the first i for which i+1 keys do not fit
		keys := int64(i + 1)
		other := 4*keys + max(keys, int64(cap(t.pull.hashes)))*pullBytesPerKey
		return !fitsSSD(t.opts.MemoryBytes, t.layout, t.unit, t.opts.SSD, load{rows: rows + keys, slots: slotsNow, resident: keys, other: other})
	})
}

// aLittleMore is the budget to try next where this one should do, but did not.
func (t *ssd) aLittleMore() int64 { return t.opts.MemoryBytes + max(t.opts.MemoryBytes/128, 16<<10) }
