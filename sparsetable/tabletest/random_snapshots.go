package tabletest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"aibox/sparsetable"
)

func (r *runner) snapshot() {
	r.wait()
	record := make([]byte, r.rng.IntN(100))
	for i := range record {
		record[i] = byte(r.rng.Uint32())
	}
	r.note("snapshot of %d rows", len(r.rows))
	r.next = savedState{r.rows.clone(), slices.Clone(record)}
	p, err := r.table.Snapshot(r.t.Context(), record)
	if err != nil {
		r.fatalf("Snapshot: %v", err)
	}
	clear(record) // the table must not retain it
	r.pending = p
}

// wait waits for the pending snapshot.
func (r *runner) wait() {
	if r.pending == nil {
		return
	}
	info, err := r.pending.Wait()
	r.note("waited for snapshot %d", info.ID)
	if err != nil {
		r.fatalf("Wait: %v", err)
	}
	if r.saved[info.ID].rows != nil {
		r.fatalf("snapshot id %d given twice", info.ID)
	}
	if info.Rows != int64(len(r.next.rows)) || info.Layout != r.layout || !bytes.Equal(info.Record, r.next.record) {
		r.fatalf("snapshot %+v of %d rows", info, len(r.next.rows))
	}
	r.saved[info.ID] = r.next
	r.pending = nil
	r.checkList()
}

// checkList compares the list of snapshots.
func (r *runner) checkList() {
	infos, err := r.table.Snapshots()
	if err != nil {
		r.fatalf("Snapshots: %v", err)
	}
	prev := uint64(0)
	for _, info := range infos {
		want, ok := r.saved[info.ID]
		if !ok || info.ID <= prev || info.Rows != int64(len(want.rows)) || !bytes.Equal(info.Record, want.record) {
			r.fatalf("listed snapshot %+v after %d", info, prev)
		}
		prev = info.ID
	}
	if len(infos) != len(r.saved) {
		r.fatalf("%d snapshots listed, want %d", len(infos), len(r.saved))
	}
}

// anyID is the ID of a snapshot, or 0 for the newest.
func (r *runner) anyID() uint64 {
	ids := []uint64{0, 0}
	for id := range r.saved {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids[r.rng.IntN(len(ids))]
}

func (r *runner) drop() {
	r.wait()
	id := r.anyID()
	r.note("drop %d", id)
	err := r.table.DropSnapshot(id)
	if id == 0 {
		if !errors.Is(err, sparsetable.ErrNoSnapshot) {
			r.fatalf("dropping snapshot 0: %v", err)
		}
		return
	}
	if err != nil {
		r.fatalf("DropSnapshot: %v", err)
	}
	delete(r.saved, id)
	r.checkList()
}

// settle releases and waits for everything.
func (r *runner) settle() {
	r.wait()
	for len(r.pinned) > 0 {
		r.release()
	}
	r.check()
}

func (r *runner) close() {
	r.settle()
	r.sum.add(r.table.Stats())
	if err := r.table.Close(); err != nil {
		r.fatalf("Close: %v", err)
	}
	r.announced = nil
}

// reopen opens snapshot id, 0 for the newest, and compares it.
func (r *runner) reopen(id uint64) {
	r.reopenFor(id, false)
	r.checkList()
	if r.rng.IntN(2) == 0 {
		r.announce() // at most the hot set is in memory now
	}
}

func (r *runner) reopenFor(id uint64, reading bool) {
	r.sum.Reopened++
	if r.k.Vary != nil {
		r.k.Vary(r.rng, &r.opts)
	}
	o := r.opts
	o.SnapshotID, o.ReadOnly = id, reading
	if r.k.Evicts && reading && r.rng.IntN(2) == 0 {
		o.SSD.HotBytes = -1 // rows that were dirty at the snapshot are not read into memory
	}
	if len(r.saved) > 0 && r.rng.IntN(2) == 0 {
		o.Layout = sparsetable.Layout{} // taken from the snapshot
	}
	r.note("open %d: %+v, %d bytes", id, o.SSD, o.MemoryBytes)
	tab, err := r.k.Open(r.t.Context(), o)
	if errors.Is(err, sparsetable.ErrBudget) && r.k.Vary != nil && len(r.saved) > 0 {
		r.note("refused: %v", err)
		r.sum.Refused++
		r.opts.MemoryBytes, o.MemoryBytes = 0, 0 // enough for all
		tab, err = r.k.Open(r.t.Context(), o)
	}
	if err != nil {
		r.fatalf("Open: %v", err)
	}
	r.table = tab
	if tab.Layout() != r.layout {
		r.fatalf("layout %+v", tab.Layout())
	}
	if id == 0 {
		for have := range r.saved {
			id = max(id, have)
		}
	}
	r.rows = r.saved[id].rows.clone()
	if !reading {
		r.check()
	}
}

// crash continues the run with what a crash now leaves on disk.
func (r *runner) crash() {
	r.sum.Crashes++
	after := r.fs.Crash(r.rng)
	r.note("crash; a snapshot is pending: %v", r.pending != nil)
	next, pending := r.next, r.pending != nil
	before := maps.Clone(r.saved)
	r.close() // the old table dies elsewhere
	r.saved = before
	r.fs = after
	r.opts.FS = after
	if pending {
		// The snapshot that was being written is there completely, or not at all.
		o := r.opts
		o.MemoryBytes = 0
		id, err := newestID(r.t.Context(), r.k, o)
		if err != nil {
			r.fatalf("after the crash: %v", err)
		}
		if _, old := r.saved[id]; id != 0 && !old {
			r.saved[id] = next
		}
	}
	r.reopen(r.anyID())
	for _, f := range after.Files() {
		if strings.HasSuffix(f, ".tmp") {
			r.fatalf("%s was left behind", f)
		}
	}
}

// newestID is the id of the newest snapshot, 0 if there is none.
func newestID(ctx context.Context, k Kind, o sparsetable.Options) (uint64, error) {
	tab, err := k.Open(ctx, o)
	if err != nil {
		return 0, err
	}
	infos, err := tab.Snapshots()
	if err = errors.Join(err, tab.Close()); err != nil || len(infos) == 0 {
		return 0, err
	}
	return infos[len(infos)-1].ID, nil
}
