package sparsetable

import (
	"context"
	"errors"
	"fmt"
)

// pullChunk is the number of keys for which the mutex is held at a time. That takes
// some 0.1 ms, for which Release and Snapshot may have to wait.
const pullChunk = 1024

// errNoRoom: the budget has no room to copy a row for the snapshot being written.
var errNoRoom = errors.New("sparsetable: the memory budget has no room for copies of rows")

// Pull implements Table.
func (t *memory) Pull(ctx context.Context, keys []uint64, mode PullMode) (*WorkingSet, error) {
	mode &^= PullDivisible | PullAhead // there are no filters, and snapshots copy pinned rows as they come
	if t.readOnly && mode == PullCreate {
		return nil, ErrReadOnly
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if err := acquire(ctx, t.changing); err != nil {
		return nil, err
	}
	defer func() { <-t.changing }()
	ws, err := t.newSet(keys)
	if err != nil {
		return nil, err
	}
	created := int64(0)
	missing, err := t.lookup(ctx, ws, keys, mode)
	if err == nil && mode == PullCreate && missing > 0 {
		created, err = t.create(ctx, ws, keys, missing)
	}
	if err != nil {
		ws.Release()
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ws.slabs = t.mu.slabs.rows
	st := &t.mu.stats
	st.Pulls++
	st.Lookups += int64(len(keys))
	st.Hits += int64(len(keys)) - missing
	if mode == PullCreate {
		st.Created += created
	} else {
		st.Missing += missing
	}
	return ws, nil
}

// newSet returns a working set whose references are all 0. From then on a snapshot
// copies the rows that the set pins.
func (t *memory) newSet(keys []uint64) (*WorkingSet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs, err := t.takeRefsLocked(len(keys))
	if err != nil {
		return nil, err
	}
	s := t.mu.slabs
	ws := &WorkingSet{refs: refs, words: s.words, shift: s.shift, mask: s.mask, release: t.release, place: len(t.mu.live)}
	t.mu.live = append(t.mu.live, ws)
	return ws, nil
}

// takeRefsLocked returns n zeros, from the pool if possible.
func (t *memory) takeRefsLocked(n int) ([]uint32, error) {
	p := &t.mu.refs
	for i, r := range p.idle {
		if cap(r) >= n && cap(r) <= 2*n {
			last := len(p.idle) - 1
			p.idle[i] = p.idle[last]
			p.idle = p.idle[:last]
			r = r[:n]
			clear(r)
			return r, nil
		}
	}
	p.held += 4 * int64(n)
	if t.budget > 0 && t.presentLocked() > t.budget {
		t.dropIdleLocked()
		if need := t.presentLocked(); need > t.budget {
			p.held -= 4 * int64(n)
			return nil, t.overBudget(fmt.Sprintf("pinning %d rows", n), need)
		}
	}
	return make([]uint32, n), nil
}

// release is WorkingSet.Release.
func (t *memory) release(ws *WorkingSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.mu.live) - 1
	moved := t.mu.live[last]
	t.mu.live[ws.place] = moved
	moved.place = ws.place
	t.mu.live[last] = nil
	t.mu.live = t.mu.live[:last]

	p := &t.mu.refs
	if len(p.idle) < maxIdleRefs {
		p.idle = append(p.idle, ws.refs)
	} else {
		p.held -= 4 * int64(cap(ws.refs))
	}
	ws.refs, ws.slabs = nil, nil
}

// lookup finds the rows of keys and returns how many have none.
func (t *memory) lookup(ctx context.Context, ws *WorkingSet, keys []uint64, mode PullMode) (missing int64, err error) {
	for from := 0; from < len(keys); {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		to := min(from+pullChunk, len(keys))
		n, err := t.lookupChunk(keys[from:to], ws.refs[from:to], mode)
		if errors.Is(err, errNoRoom) {
			// Wait until the snapshot is written, and let no other begin.
			if err := acquire(ctx, t.saving); err != nil {
				return 0, err
			}
			n, err = t.lookupChunk(keys[from:to], ws.refs[from:to], mode)
			<-t.saving
		}
		if err != nil {
			return 0, err
		}
		missing += n
		from = to
	}
	return missing, nil
}

func (t *memory) lookupChunk(keys []uint64, refs []uint32, mode PullMode) (missing int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, x := t.mu.slabs, &t.mu.index
	for i, key := range keys {
		ref := x.find(key, s)
		if ref != 0 && mode == PullLookup && !s.trained(ref) {
			ref = 0
		}
		if ref == 0 {
			refs[i] = 0
			missing++
			continue
		}
		if t.mu.snap != nil {
			if err := t.mu.snap.secure(t, ref); err != nil {
				return 0, err
			}
		}
		refs[i] = ref
	}
	return missing, nil
}

// create makes rows for the references that are 0, and returns how many.
func (t *memory) create(ctx context.Context, ws *WorkingSet, keys []uint64, missing int64) (created int64, err error) {
	t.mu.Lock()
	err = t.growLocked(missing, fmt.Sprintf("pulling %d rows, %d of them new,", len(keys), missing))
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for from := 0; from < len(keys); from += pullChunk {
		if err := ctx.Err(); err != nil {
			return created, err
		}
		to := min(from+pullChunk, len(keys))
		n, err := t.createChunk(keys[from:to], ws.refs[from:to])
		created += n
		if err != nil {
			return created, err
		}
	}
	return created, nil
}

func (t *memory) createChunk(keys []uint64, refs []uint32) (created int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, key := range keys {
		if refs[i] != 0 {
			continue
		}
		if ref := t.mu.index.find(key, t.mu.slabs); ref != 0 {
			refs[i] = ref // the key comes several times in keys
			continue
		}
		ref, err := t.createLocked(key)
		if err != nil {
			return created, err
		}
		created++
		if t.init != nil {
			t.init(key, t.mu.slabs.row(ref))
		}
		refs[i] = ref
	}
	return created, nil
}

// createLocked makes a row of zeros for key, which must be absent. REQUIRES:
// growLocked made room.
func (t *memory) createLocked(key uint64) (uint32, error) {
	ref := t.mu.slabs.take(key)
	if err := t.mu.index.insert(key, ref); err != nil {
		t.mu.slabs.put(ref)
		return 0, err
	}
	if t.mu.snap != nil {
		t.mu.snap.pass(t, ref)
	}
	return ref, nil
}
