package tabletest

import (
	"slices"

	"aibox/sparsetable"
)

// loss loses files of the newest snapshot and opens what is left of it. The remaining rows must be
// unchanged, and it must be possible to refill the lost ones, row by row. The table continues and
// is saved; the earlier snapshots are dropped, because they may lack files.
func (r *runner) loss() {
	if r.k.Lose == nil || len(r.saved) == 0 || len(r.opts.SSD.Dirs) < 2 {
		return
	}
	for again := true; again; { // now and then there is another loss before anything is saved
		r.close()
		r.note("lose %s", r.k.Lose(r.rng, r.fs, &r.opts))
		r.openLost()
		if r.rng.IntN(2) == 0 {
			r.refill()
		}
		r.check()
		again = r.rng.IntN(4) == 0
	}
	for range r.rng.IntN(8) {
		[]func(){r.pull, r.train, r.release, r.expire, r.importRows, r.flush, r.runBackground, r.compact, r.announce, r.lookup}[r.rng.IntN(10)]()
	}
	before := r.saved
	r.saved = map[uint64]savedState{}
	r.next = savedState{r.rows.clone(), []byte("after a loss")}
	p, err := r.table.Snapshot(r.t.Context(), r.next.record)
	if err != nil {
		r.fatalf("Snapshot after a loss: %v", err)
	}
	info, err := p.Wait()
	if err != nil || info.Rows != int64(len(r.next.rows)) {
		r.fatalf("snapshot after a loss: %+v of %d rows: %v", info, len(r.next.rows), err)
	}
	for id := range before {
		if err := r.table.DropSnapshot(id); err != nil {
			r.fatalf("drop %d after a loss: %v", id, err)
		}
	}
	r.saved[info.ID] = r.next
	r.checkList()
	if r.rng.IntN(2) == 0 {
		r.close()
		r.reopen(0)
	}
}

// openLost opens the newest snapshot, some of whose files are lost.
func (r *runner) openLost() {
	o := r.opts
	o.SSD.AllowLost, o.MemoryBytes = true, 0
	tab, err := r.k.Open(r.t.Context(), o)
	if err != nil {
		r.fatalf("Open after a loss: %v", err)
	}
	r.table, r.opts.MemoryBytes = tab, 0
	newest := uint64(0)
	for id := range r.saved {
		newest = max(newest, id)
	}
	r.rows = state{}
	err = tab.Scan(r.t.Context(), func(key uint64, row []float32) error {
		if want := r.saved[newest].rows[key]; !equalRows(row, want) {
			r.fatalf("after a loss key %d holds %v, was %v", key, row, want)
		}
		r.rows[key] = slices.Clone(row)
		return nil
	})
	if err != nil {
		r.fatalf("Scan after a loss: %v", err)
	}
	missing := int64(len(r.saved[newest].rows) - len(r.rows))
	l := tab.(sparsetable.LossHandler).Lost()
	if l == nil && missing > 0 || l != nil && l.Rows != missing {
		r.fatalf("%d rows are lost, the table says %+v", missing, l)
	}
	r.note("%d rows are lost, %d are left", missing, len(r.rows))
	r.sum.Lost += missing
	r.lost = state{}
	for key, row := range r.saved[newest].rows {
		if r.rows[key] == nil {
			r.lost[key] = row
		}
	}
}

// refill gives the table the lost rows, with other values, and wrong versions of the others.
func (r *runner) refill() {
	all := r.lost.clone()
	for key, row := range r.rows {
		all[key] = slices.Clone(row)
	}
	for _, row := range all {
		row[0]++
	}
	n, err := r.table.(sparsetable.LossHandler).Refill(r.t.Context(), all.source())
	if err != nil || n != int64(len(r.lost)) {
		r.fatalf("Refill: %d of %d lost rows: %v", n, len(r.lost), err)
	}
	for key := range r.lost {
		r.rows[key] = all[key]
	}
}
