package sparsetable

import (
	"errors"
	"fmt"
)

// errNoVictims: every cached row is pinned.
var errNoVictims = errors.New("sparsetable: all rows in memory are pinned")

// otherBytes is what the table holds in memory besides the cache.
func (t *ssd) otherBytes() int64 {
	t.mu.Lock()
	refs := t.mu.refs.held
	t.mu.Unlock()
	t.indexMu.RLock()
	capture := t.index.CaptureBytes()
	index := t.index.Bytes() - capture
	t.indexMu.RUnlock()
	lists := t.catalog.MemoryBytes() - catalogBytes + capture
	return t.plan.fixedBytes + index + refs + max(0, lists-ssdScratchBytes/2)
}

// reserve makes the cache leave room for extra bytes. REQUIRES: rewrite is
// held. Errors: errNoVictims where pinned rows are in the way.
func (t *ssd) reserve(extra int64) error {
	limit := min(t.opts.MemoryBytes-t.otherBytes()-indexSlackBytes-extra, t.plan.cacheBytes)
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
		dropped, err := t.evict(1 << shift) // as many as a slab has, to move into their places
		if err != nil {
			return err
		}
		if dropped == 0 {
			return errNoVictims
		}
	}
	return errNoVictims
}

// maxShrinkSteps are the steps without a slab given back: pinned rows may keep a slab from being emptied however many
// others leave.
const maxShrinkSteps = 4

// takeRefs returns n zeros, from the pool if possible, and makes room for what
// a Pull of as many keys works with. REQUIRES: changing is held.
func (t *ssd) takeRefs(n int) ([]uint32, error) {
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
	t.rewrite.Lock()
	err := t.reserve(need)
	t.rewrite.Unlock()
	if err != nil {
		if errors.Is(err, errNoVictims) {
			err = t.pullOverBudget(n)
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

// pullOverBudget is the error of a Pull of n keys that did not fit.
func (t *ssd) pullOverBudget(n int) error {
	t.mu.Lock()
	pinned := int64(n)
	for _, ws := range t.mu.live {
		pinned += int64(len(ws.refs)) // rows of several sets count for each
	}
	t.mu.Unlock()
	other := pinned*4 + int64(max(n, cap(t.pull.hashes)))*pullBytesPerKey
	t.rewrite.Lock()
	rows := t.rewrite.stored
	t.rewrite.Unlock()
	need := smallestSSD(t.layout, t.opts.SSD, rows+pinned, pinned, other)
	if need <= t.opts.MemoryBytes {
		need = t.opts.MemoryBytes + t.opts.MemoryBytes/16 // what is in use is badly cut up
	}
	return t.overBudget(fmt.Sprintf("pinning %d rows", pinned), need)
}
