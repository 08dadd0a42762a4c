package ssd_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

func (d *deltaRun) equal(tab sparsetable.Table, want map[uint64]float32) {
	d.t.Helper()
	have := map[uint64]float32{}
	err := tab.Scan(d.t.Context(), func(key uint64, row []float32) error {
		if _, again := have[key]; again {
			return fmt.Errorf("key %x is there twice", key)
		}
		have[key] = row[0]
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if !maps.Equal(have, want) {
		for k, v := range want {
			if have[k] != v {
				d.t.Errorf("key %x holds %v, want %v", k, have[k], v)
			}
		}
		d.t.Fatalf("%d rows, want %d", len(have), len(want))
	}
}

// reopen closes the table or lets the machine crash, reads all snapshots, and continues with one of
// them under another budget.
func (d *deltaRun) reopen() {
	d.t.Helper()
	d.release()
	if len(d.saved) == 0 {
		return
	}
	disk := d.disk
	if d.rng.IntN(2) == 0 {
		disk = d.disk.Crash(d.rng).(*ssdDisk)
	}
	if err := d.table.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.disk = disk
	ids := slices.Sorted(maps.Keys(d.saved))
	for _, id := range ids {
		d.reads(id)
	}
	at := ids[len(ids)-1]
	if d.rng.IntN(3) == 0 {
		at = ids[d.rng.IntN(len(ids))]
	}
	o := d.opts
	o.SnapshotID = at
	resident := []int64{300, 700, 1500, 3000}[d.rng.IntN(4)]
	o.MemoryBytes = d.budget(resident)
	if resident < 1500 {
		d.tight++
	}
	d.table = d.open(o)
	d.rows = maps.Clone(d.saved[at])
	if n := d.table.Stats().Rows; n != int64(len(d.rows)) {
		d.t.Fatalf("snapshot %d: %d rows are counted, want %d", at, n, len(d.rows))
	}
	d.equal(d.table, d.rows)
	if faults, err := ssd.VerifyOpen(d.t.Context(), d.table); err != nil || len(faults) > 0 {
		d.t.Fatal(faults, err)
	}
	if resident < 1500 { // a snapshot from there, and then as it was
		if d.rng.IntN(3) > 0 {
			ssd.SetShape(d.table, 4, 8, 32, 0)
			d.update(d.pull(d.someKeys(20, 5000), sparsetable.PullCreate))
			id := tabletest.Commit(d.t, d.table, nil).ID
			d.saved[id], o.SnapshotID = maps.Clone(d.rows), id
		}
		if err := d.table.Close(); err != nil {
			d.t.Fatal(err)
		}
		d.reads(o.SnapshotID)
		o.MemoryBytes = d.opts.MemoryBytes
		d.table = d.open(o)
		d.equal(d.table, d.rows)
	}
}

// reads opens a snapshot for reading only and compares its rows.
func (d *deltaRun) reads(id uint64) {
	d.t.Helper()
	o := d.opts
	o.SnapshotID, o.ReadOnly = id, true
	if d.rng.IntN(2) == 0 {
		o.SSD.HotBytes = -1
	}
	tab := d.open(o)
	d.equal(tab, d.saved[id])
	keys := d.someKeys(300, 5000)
	ws, err := tab.Pull(d.t.Context(), keys, sparsetable.PullLookup)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, k := range keys {
		want, trained := d.saved[id][k]
		if ws.Found(i) != trained || trained && ws.Row(i)[0] != want {
			d.t.Fatalf("snapshot %d: key %x is read as %v, %v, want %v", id, k, ws.Found(i), ws.Row(i)[0], want)
		}
	}
	ws.Release()
	faults, err := ssd.VerifyOpen(d.t.Context(), tab)
	if err = errors.Join(err, tab.Close()); err != nil || len(faults) > 0 {
		d.t.Fatalf("snapshot %d: %v, %v", id, faults, err)
	}
}

func (d *deltaRun) release() {
	if d.held != nil {
		d.held.Release()
		d.held = nil
	}
}
