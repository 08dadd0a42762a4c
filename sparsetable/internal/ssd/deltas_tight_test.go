package ssd_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDDeltasTight opens a snapshot whose updated rows are in two delta files. The budgets are so
// small that most of these rows have to be written to their buckets before the others can be
// loaded.
func TestSSDDeltasTight(t *testing.T) {
	d := newDeltaRun(t, rand.New(rand.NewPCG(1, 0)))
	d.opts.MemoryBytes = d.budget(20_000) // no row leaves it
	if err := d.table.Close(); err != nil {
		t.Fatal(err)
	}
	d.table = d.open(d.opts)
	ssd.SetShape(d.table, 2, 4, 16, 0) // many slots, so that what is noted of them takes memory
	for _, keys := range []int{3000, 1500} {
		d.update(d.pull(d.someKeys(keys, 5000), sparsetable.PullCreate))
		d.saved[tabletest.Commit(t, d.table, nil).ID] = maps.Clone(d.rows)
	}
	newest := uint64(0)
	for id := range d.saved {
		newest = max(newest, id)
	}
	if n := ssd.DeltaLayersOf(d.table, newest); n != 2 {
		t.Fatalf("the snapshot has delta files of %d instants, want 2", n)
	}
	if err := d.table.Close(); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for bytes := d.budget(0) - 64<<10; bytes < d.budget(2400); bytes += 6500 {
		o := d.opts
		o.SnapshotID, o.MemoryBytes = newest, bytes
		d.disk = d.disk.Crash(d.rng).(*ssdDisk) // nothing is lost: all was committed
		var devices []blockio.Device
		for _, dev := range d.disk.devices {
			devices = append(devices, dev)
		}
		tab, err := openOn(t.Context(), o, devices, d.disk.fs)
		if errors.Is(err, sparsetable.ErrBudget) {
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", bytes, err)
		}
		opened++
		if n := tab.Stats().Rows; n != int64(len(d.rows)) {
			t.Fatalf("%d bytes: %d rows are counted, want %d", bytes, n, len(d.rows))
		}
		d.equal(tab, d.rows)
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if opened < 10 {
		t.Errorf("%d budgets were enough, which is too few to test anything", opened)
	}
}
