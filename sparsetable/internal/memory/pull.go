package memory

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"aibox/internal/kernel"
	"aibox/sparsetable/internal/contract"
)

// pullChunk is the number of keys that a thread looks up at a time, and that are handled per
// acquisition of the mutex where it is needed. That takes some 0.1 ms, during which Release and
// Snapshot may have to wait.
const pullChunk = 1024

// errNoRoom: there is no room to copy a row for the snapshot being written.
var errNoRoom = errors.New("sparsetable: there is too little memory to copy rows for the snapshot")

// Pull implements Table.
func (t *Table) Pull(ctx context.Context, keys []uint64, mode contract.PullMode) (*contract.WorkingSet, error) {
	// Other flags make no difference: there are no filters, snapshots copy pinned rows as they
	// come, and pinned rows do not keep memory from the index.
	trained := mode&contract.PullTrained != 0
	mode = mode.Kind()
	counts := mode == contract.PullLookup && !trained
	if t.readOnly && mode == contract.PullCreate {
		return nil, contract.ErrReadOnly
	}
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	if err := t.changing.Acquire(ctx); err != nil {
		return nil, err
	}
	defer t.changing.Release()
	ws, refs, err := t.newSet(len(keys))
	if err != nil {
		return nil, err
	}
	created := int64(0)
	missing, err := t.lookup(ctx, keys, refs, counts)
	if err == nil && mode == contract.PullCreate && missing > 0 {
		created, err = t.create(ctx, keys, refs, missing)
	}
	if err == nil {
		err = t.publish(ctx, ws, refs)
	}
	if err == nil && t.inFlight.Closed() { // Close did not see the set, and waits for this call
		err = contract.ErrClosed
	}
	if err != nil {
		t.release(ws, refs)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.slabs
	ws.WorkingSet = contract.NewSet(refs, contract.Rows{Slabs: s.rows, Shift: s.shift, Mask: s.mask, Words: s.words}, nil, func() { t.release(ws, refs) })
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

// newSet returns a working set and a list for its n references, which publish passes to the set.
func (t *Table) newSet(n int) (*pinned, []uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs, err := t.takeRefsLocked(n)
	if err != nil {
		return nil, nil, err
	}
	ws := &pinned{place: len(t.mu.live)}
	t.mu.live = append(t.mu.live, ws)
	return ws, refs, nil
}

// publish gives a set its references. A snapshot that is fixed later copies the rows that they pin.
// For a snapshot that was fixed before, publish makes the copies, before the caller can change the
// rows.
func (t *Table) publish(ctx context.Context, ws *pinned, refs []uint32) error {
	t.mu.Lock()
	ws.refs = refs
	snap := t.mu.snap
	t.mu.Unlock()
	if snap == nil {
		return nil
	}
	for from := 0; from < len(refs); from += pullChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.mu.Lock()
		err := snap.secure(t, refs[from:min(from+pullChunk, len(refs))])
		t.mu.Unlock()
		if errors.Is(err, errNoRoom) {
			// The snapshot needs no copies once it is written.
			if err := t.saving.Acquire(ctx); err != nil {
				return err
			}
			t.saving.Release()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeRefsLocked returns a list of n references, from the pool if possible.
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

// release removes a set from the list of live sets.
func (t *Table) release(ws *pinned, refs []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.mu.live) - 1
	moved := t.mu.live[last]
	t.mu.live[ws.place] = moved
	moved.place = ws.place
	t.mu.live[last] = nil
	t.mu.live = t.mu.live[:last]

	t.mu.refs.Give(refs)
	ws.refs = nil
}

// lookup finds the rows of keys, on all threads, and returns how many have none. It takes no lock:
// only holders of changing change the index and the places of rows.
func (t *Table) lookup(ctx context.Context, keys []uint64, refs []uint32, counts bool) (int64, error) {
	var missing atomic.Int64
	kernel.Parallel(len(keys), pullChunk, func(lo, hi int) {
		for from := lo; from < hi && ctx.Err() == nil; from += pullChunk {
			to := min(from+pullChunk, hi)
			missing.Add(t.lookupChunk(keys[from:to], refs[from:to], counts))
		}
	})
	return missing.Load(), ctx.Err()
}

func (t *Table) lookupChunk(keys []uint64, refs []uint32, counts bool) (missing int64) {
	s := t.mu.slabs
	t.mu.index.findAll(keys, refs, s)
	for i, ref := range refs {
		if ref != 0 && counts && !s.trained(ref) {
			ref, refs[i] = 0, 0
		}
		if ref == 0 {
			missing++
		}
	}
	return missing
}

// create creates rows for the references that are 0, and returns how many.
func (t *Table) create(ctx context.Context, keys []uint64, refs []uint32, missing int64) (created int64, err error) {
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
		n, err := t.createChunk(keys[from:to], refs[from:to])
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
			refs[i] = ref // the key occurs several times in keys
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
