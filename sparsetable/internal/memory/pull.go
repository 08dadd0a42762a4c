package memory

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/contract"
)

// pullChunk is the number of keys for which the mutex is held at a time. That takes
// some 0.1 ms, for which Release and Snapshot may have to wait.
const pullChunk = 1024

// errNoRoom: the budget has no room to copy a row for the snapshot being written.
var errNoRoom = errors.New("sparsetable: the memory budget has no room for copies of rows")

// Pull implements Table.
func (t *Table) Pull(ctx context.Context, keys []uint64, mode contract.PullMode) (*contract.WorkingSet, error) {
	mode &^= contract.PullDivisible | contract.PullAhead // there are no filters, and snapshots copy pinned rows as they come
	if t.readOnly && mode == contract.PullCreate {
		return nil, contract.ErrReadOnly
	}
	if err := t.door.Enter(); err != nil {
		return nil, err
	}
	defer t.door.Leave()
	if err := t.changing.Acquire(ctx); err != nil {
		return nil, err
	}
	defer t.changing.Release()
	ws, err := t.newSet(keys)
	if err != nil {
		return nil, err
	}
	created := int64(0)
	missing, err := t.lookup(ctx, ws, keys, mode)
	if err == nil && mode == contract.PullCreate && missing > 0 {
		created, err = t.create(ctx, ws, keys, missing)
	}
	if err != nil {
		t.release(ws)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.slabs
	ws.WorkingSet = contract.NewSet(ws.refs, contract.Rows{Slabs: s.rows, Shift: s.shift, Mask: s.mask, Words: s.words}, nil, func() { t.release(ws) })
	st := &t.mu.stats
	st.Pulls++
	st.Lookups += int64(len(keys))
	st.Hits += int64(len(keys)) - missing
	if mode == contract.PullCreate {
		st.Created += created
	} else {
		st.Missing += missing
	}
	return &ws.WorkingSet, nil
}

// newSet returns a working set whose references are all 0. From then on a snapshot
// copies the rows that the set pins.
func (t *Table) newSet(keys []uint64) (*pinned, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs, err := t.takeRefsLocked(len(keys))
	if err != nil {
		return nil, err
	}
	ws := &pinned{refs: refs, place: len(t.mu.live)}
	t.mu.live = append(t.mu.live, ws)
	return ws, nil
}

// takeRefsLocked returns n zeros, from the pool if possible.
func (t *Table) takeRefsLocked(n int) ([]uint32, error) {
	p := &t.mu.refs
	if r := p.Take(n); r != nil {
		return r, nil
	}
	p.Held += 4 * int64(n)
	if t.budget > 0 && t.presentLocked() > t.budget {
		p.Drop()
		if need := t.presentLocked(); need > t.budget {
			p.Held -= 4 * int64(n)
			return nil, t.overBudget(fmt.Sprintf("pinning %d rows", n), need)
		}
	}
	return make([]uint32, n), nil
}

// release takes a set off the list.
func (t *Table) release(ws *pinned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.mu.live) - 1
	moved := t.mu.live[last]
	t.mu.live[ws.place] = moved
	moved.place = ws.place
	t.mu.live[last] = nil
	t.mu.live = t.mu.live[:last]

	t.mu.refs.Give(ws.refs)
	ws.refs = nil
}

// lookup finds the rows of keys and returns how many have none.
func (t *Table) lookup(ctx context.Context, ws *pinned, keys []uint64, mode contract.PullMode) (missing int64, err error) {
	for from := 0; from < len(keys); {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		to := min(from+pullChunk, len(keys))
		n, err := t.lookupChunk(keys[from:to], ws.refs[from:to], mode)
		if errors.Is(err, errNoRoom) {
			// Wait until the snapshot is written, and let no other begin.
			if err := t.saving.Acquire(ctx); err != nil {
				return 0, err
			}
			n, err = t.lookupChunk(keys[from:to], ws.refs[from:to], mode)
			t.saving.Release()
		}
		if err != nil {
			return 0, err
		}
		missing += n
		from = to
	}
	return missing, nil
}

func (t *Table) lookupChunk(keys []uint64, refs []uint32, mode contract.PullMode) (missing int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, x := t.mu.slabs, &t.mu.index
	for i, key := range keys {
		ref := x.find(key, s)
		if ref != 0 && mode == contract.PullLookup && !s.trained(ref) {
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
func (t *Table) create(ctx context.Context, ws *pinned, keys []uint64, missing int64) (created int64, err error) {
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

func (t *Table) createChunk(keys []uint64, refs []uint32) (created int64, err error) {
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
func (t *Table) createLocked(key uint64) (uint32, error) {
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
