package ssd_test

import (
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// deltaNames returns the names of the delta files on the device.
func (d *deltaSpace) deltaNames() (names []string) {
	d.t.Helper()
	all, err := d.dev.List()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, n := range all {
		if isDelta(n) {
			names = append(names, n)
		}
	}
	return names
}

// TestSSDDeltaCosts checks that a snapshot writes only the rows that have changed since the last
// one, until the delta files have twice as many rows as are dirty; then it writes the dirty rows
// into one file. Files that no snapshot needs any more are deleted, but those that the next
// snapshot may refer to stay even if their own snapshot was dropped.
func TestSSDDeltaCosts(t *testing.T) {
	const rows, few = 20_000, 2000
	d := newDeltaSpace(t)
	d.opts.SSD.HotBytes = -1
	d.open()
	d.train(0, rows)
	before := tabletest.Commit(t, d.tab, nil)
	for i := range 11 { // the eleventh would make it 42,000 rows
		wrote := d.wrote.Load()
		d.train(few*(i%5), few)
		if i%2 == 1 {
			if err := d.tab.DropSnapshot(before.ID); err != nil {
				t.Fatal(err)
			}
		}
		info := tabletest.Commit(t, d.tab, nil)
		if i%2 == 0 {
			if err := d.tab.DropSnapshot(before.ID); err != nil {
				t.Fatal(err)
			}
		}
		before = info
		files, bytes := 2+i, ssd.DeltaBytes(d.tab, few)
		if i == 10 {
			files, bytes = 1, ssd.DeltaBytes(d.tab, rows)
		}
		if n := len(ssd.DeltasOf(d.tab, info.ID)); n != files || len(d.deltaNames()) != files {
			t.Fatalf("snapshot %d has %d files, there are %d, want %d", i, n, len(d.deltaNames()), files)
		}
		if n := d.wrote.Load() - wrote; n != bytes {
			t.Fatalf("snapshot %d wrote %d bytes, want %d", i, n, bytes)
		}
		details, err := sparsetable.DetailsOf(t.Context(), d.tab)
		if err != nil {
			t.Fatal(err)
		}
		if dir := details.Directories[0]; dir.HeldBytes != d.deltas() || dir.Files != files {
			t.Fatalf("%d bytes of delta files, but %+v", d.deltas(), dir)
		}
	}
	wrote := d.wrote.Load()
	for range 30 { // nothing has changed
		if info := tabletest.Commit(t, d.tab, nil); len(ssd.DeltasOf(d.tab, info.ID)) != 1 {
			t.Fatal(ssd.DeltasOf(d.tab, info.ID))
		}
	}
	if n := d.wrote.Load() - wrote; n != 0 {
		t.Errorf("snapshots without a change wrote %d bytes", n)
	}
	for range 80 {
		d.train(0, 1)
		if n := len(ssd.DeltasOf(d.tab, tabletest.Commit(t, d.tab, nil).ID)); n > 64 {
			t.Errorf("a snapshot has %d files", n)
		}
	}
	d.close()
	d.open()
	d.check()
	// The rows that were restored are in the files as they are.
	wrote = d.wrote.Load()
	d.train(rows, 1)
	if info := tabletest.Commit(t, d.tab, nil); len(ssd.DeltasOf(d.tab, info.ID)) < 2 || d.wrote.Load()-wrote > 4096 {
		t.Errorf("a snapshot after a restart wrote %d bytes", d.wrote.Load()-wrote)
	}
	d.close()
}

// TestSSDDeltasSmallerBudget checks that rows of one or several delta files that do not fit the cache
// are written to their buckets while the table is opened, and that the next snapshot does not take the
// rows of these slots from the delta files.
func TestSSDDeltasSmallerBudget(t *testing.T) {
	for _, changed := range []int{0, 2500, 6000} {
		for _, resident := range []int64{250, 600, 3000, 4500, 5200, 5600} {
			r := newRestarted(t, 1, 8000)
			r.opts.SSD.HotBytes = -1
			large := r.opts.MemoryBytes
			r.open()
			train := func(from, n int) {
				t.Helper()
				for ; n > 0; from, n = from+100, n-100 {
					keys := tabletest.KeysFrom(from, 100)
					ws, err := r.table.Pull(t.Context(), keys, sparsetable.PullCreate)
					if err != nil {
						t.Fatal(err)
					}
					for i, k := range keys {
						r.values[k]++
						ws.Row(i)[0] = r.values[k]
						stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
					}
					ws.Release()
				}
			}
			check := func(what string) {
				t.Helper()
				rows := 0
				err := r.table.Scan(t.Context(), func(key uint64, row []float32) error {
					if rows++; row[0] != r.values[key] {
						t.Errorf("key %x holds %v, want %v", key, row[0], r.values[key])
					}
					return nil
				})
				if err != nil || rows != len(r.values) || r.table.Stats().Rows != int64(rows) {
					t.Fatalf("%s, %d changed, cache of %d: %d rows, %d counted, want %d: %v", what, changed, resident, rows, r.table.Stats().Rows, len(r.values), err)
				}
			}
			ssd.SetShape(r.table, 4, 8, 32, 0)
			train(0, 6000)
			tabletest.Commit(t, r.table, nil)
			if changed > 0 {
				train(1000, changed) // in part new ones
				if info := tabletest.Commit(t, r.table, nil); changed < 6000 && len(ssd.DeltasOf(r.table, info.ID)) != 2 {
					t.Fatal(ssd.DeltasOf(r.table, info.ID))
				}
			}
			for range 2 {
				r.close()
				r.opts.MemoryBytes = r.budget(resident)
				r.open()
				check("opened with less memory")
				r.close()
				r.open()
				train(500, 100)
				tabletest.Commit(t, r.table, nil)
				r.close()
				r.opts.MemoryBytes = large
				r.open()
				check("opened with all memory")
				tabletest.Commit(t, r.table, nil)
			}
			r.close()
		}
	}
}
