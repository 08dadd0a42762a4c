package ssd_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// deltaSpace is a table whose rows are all dirty, on a device whose size the test chooses.
type deltaSpace struct {
	t    *testing.T
	dev  *blocktest.Device
	fs   *vfs.MemFS
	opts sparsetable.Options
	tab  sparsetable.Table
	want map[uint64]int
	// full makes writes to delta files fail; wrote is what they took.
	full  atomic.Bool
	wrote atomic.Int64
}

func newDeltaSpace(t *testing.T) *deltaSpace {
	d := &deltaSpace{t: t, dev: blocktest.New(blocktest.Options{Dir: "/ssd"}), fs: vfs.NewMem(), want: map[uint64]int{}}
	d.opts = sparsetable.Options{Layout: stressLayout, MemoryBytes: 32 << 20, SSD: sparsetable.SSDOptions{Dirs: []string{"/ssd"}}}
	d.dev.Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Write && strings.HasSuffix(op.Name, ".delta") {
			if d.full.Load() {
				return blocktest.Fault{Err: syscall.ENOSPC}
			}
			d.wrote.Add(int64(op.Bytes))
		}
		return blocktest.Fault{}
	})
	return d
}

func (d *deltaSpace) open() {
	d.t.Helper()
	var err error
	if d.tab, err = openOn(d.t.Context(), d.opts, []blockio.Device{d.dev}, d.fs); err != nil {
		d.t.Fatal(err)
	}
	ssd.WaitRestored(d.tab)
}

func (d *deltaSpace) close() {
	d.t.Helper()
	if err := d.tab.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// train updates rows, beginning with the given one.
func (d *deltaSpace) train(from, n int) {
	d.t.Helper()
	d.pinned(from, n).Release()
}

func (d *deltaSpace) pinned(from, n int) *sparsetable.WorkingSet {
	d.t.Helper()
	keys := tabletest.KeysFrom(from, n)
	ws, err := d.tab.Pull(d.t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, k := range keys {
		st := stressLayout.Stats(ws.Row(i))
		st.Count++
		stressLayout.SetStats(ws.Row(i), st)
		d.want[k]++
	}
	return ws
}

// check reads the table back.
func (d *deltaSpace) check() {
	d.t.Helper()
	rows := 0
	err := d.tab.Scan(d.t.Context(), func(key uint64, row []float32) error {
		rows++
		if n := int(stressLayout.Stats(row).Count); n != d.want[key] {
			return fmt.Errorf("key %x was trained %d times, want %d", key, n, d.want[key])
		}
		return nil
	})
	if err != nil || rows != len(d.want) {
		d.t.Fatalf("%d rows, want %d: %v", rows, len(d.want), err)
	}
}

// snapshot tries to take a snapshot.
func (d *deltaSpace) snapshot() error {
	p, err := d.tab.Snapshot(d.t.Context(), nil)
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

// deltas returns the size of the delta files on the device.
func (d *deltaSpace) deltas() (bytes int64) {
	names, err := d.dev.List()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasSuffix(n, ".delta") {
			bytes += int64(len(d.dev.Bytes(n)))
		}
	}
	return bytes
}

// TestSSDSnapshotFullDisk checks a snapshot whose rows do not fit the file system. It must fail
// before it writes any of them, with an error that names the directory and the free space. A
// snapshot that meets a full disk only while it writes must fail in the same way. The table must
// continue to work, and save the rows when there is room again.
func TestSSDSnapshotFullDisk(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("while it writes ", late), func(t *testing.T) {
			d := newDeltaSpace(t)
			d.open()
			d.train(0, 1000)
			if err := d.snapshot(); err != nil {
				t.Fatal(err)
			}
			d.train(0, 20_000)
			before, held := d.wrote.Load(), d.deltas()
			if late {
				d.full.Store(true)
			} else {
				d.dev.SetCapacity(held + 900<<10)
			}
			for range 3 {
				err := d.snapshot()
				if !errors.Is(err, sparsetable.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) != late {
					t.Fatalf("snapshot on a full disk: %v", err)
				}
				for _, part := range []string{"/ssd", "bytes left", "has"} {
					if part == "bytes left" && !late {
						part = fmt.Sprint(900<<10, " bytes left")
					}
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q lacks %q", err, part)
					}
				}
				if n := d.wrote.Load() - before; n > 0 {
					t.Errorf("%d bytes written", n)
				}
				if n := d.deltas(); n != held {
					t.Errorf("delta files have %d bytes, had %d", n, held)
				}
				d.train(500, 2000)
				d.check()
			}
			d.full.Store(false)
			d.dev.SetCapacity(0)
			if err := d.snapshot(); err != nil {
				t.Fatal(err)
			}
			d.close()
			d.open()
			d.check()
			d.close()
		})
	}
}

// TestSSDSnapshotNearlyFullDisk checks that rows that are both pinned and dirty are counted once
// when space is reserved, and that clean rows are left out to save space.
func TestSSDSnapshotNearlyFullDisk(t *testing.T) {
	d := newDeltaSpace(t)
	d.open()
	d.train(0, 10_000)
	ws := d.pinned(0, 10_000)
	d.dev.SetCapacity(ssd.DeltaBytes(d.tab, 10_000))
	if err := d.snapshot(); err != nil {
		t.Fatal(err)
	}
	if n := d.deltas(); n != ssd.DeltaBytes(d.tab, 10_000) {
		t.Errorf("a delta file of %d bytes", n)
	}
	ws.Release()
	if err := d.snapshot(); !errors.Is(err, sparsetable.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
		t.Errorf("snapshot on a full disk: %v", err)
	}
	d.dev.SetCapacity(0)
	d.close()
	d.open()
	d.check()
	d.close()
}

// onDisk returns the size of all files with rows of the table.
func (d *deltaSpace) onDisk() (bytes int64) {
	names, err := d.dev.List()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, n := range names {
		bytes += int64(len(d.dev.Bytes(n)))
	}
	return bytes
}

// TestSSDSnapshotBudget checks that rows that snapshots have outside of buckets count against a
// directory's budget, including those of earlier runs. A snapshot that does not fit must fail
// before it writes. Earlier snapshots stay, training continues, and dropping a snapshot frees its
// space.
func TestSSDSnapshotBudget(t *testing.T) {
	const rows = 20_000
	d := newDeltaSpace(t)
	d.open()
	one := ssd.DeltaBytes(d.tab, rows)
	d.close()
	budget := 5 * one / 2
	d.opts.SSD.DirBudgetBytes = budget
	d.open()
	counted := func(snapshots int64) {
		t.Helper()
		details, err := sparsetable.DetailsOf(t.Context(), d.tab)
		if err != nil {
			t.Fatal(err)
		}
		dir, bytes := details.Directories[0], d.onDisk()
		if bytes != snapshots*one || bytes > budget || dir.DiskBytes != bytes || dir.HeldBytes != bytes || dir.Files != int(snapshots) || details.Stats.DiskBytes != bytes || dir.BudgetBytes != budget {
			t.Fatalf("%d bytes on disk, %d snapshots of %d bytes, budget %d: %+v", bytes, snapshots, one, budget, dir)
		}
	}
	full := func() {
		t.Helper()
		before := d.wrote.Load()
		for range 2 {
			d.train(0, rows)
			err := d.snapshot()
			if !errors.Is(err, sparsetable.ErrNoSpace) {
				t.Fatalf("a third snapshot: %v", err)
			}
			for _, part := range []string{"/ssd", fmt.Sprint(one, " bytes"), fmt.Sprint("budget is ", budget)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		}
		if n := d.wrote.Load() - before; n > 0 {
			t.Errorf("%d bytes written", n)
		}
		counted(2)
	}
	for i := range int64(2) {
		d.train(0, rows)
		if err := d.snapshot(); err != nil {
			t.Fatal(err)
		}
		counted(i + 1)
	}
	saved := maps.Clone(d.want)
	full()
	infos, err := d.tab.Snapshots()
	if err != nil || len(infos) != 2 {
		t.Fatal(infos, err)
	}
	d.check()
	d.close()
	d.open() // with the second
	d.want = saved
	counted(2)
	d.check()
	full()
	d.check()
	if err := d.tab.DropSnapshot(infos[0].ID); err != nil {
		t.Fatal(err)
	}
	counted(1)
	if err := d.snapshot(); err != nil {
		t.Fatal(err)
	}
	counted(2)
	d.close()
	d.open()
	d.check()
	d.close()
}

// TestSSDHotRowsLeaveBudget checks that the clean rows that a snapshot saves do not use up a
// directory's budget.
func TestSSDHotRowsLeaveBudget(t *testing.T) {
	const rows, changed = 60_000, 300
	buckets := int64(0)
	for _, c := range []struct {
		share float64 // of what buckets take; 0: no limit
		hot   bool
	}{{0, true}, {1.3, false}, {4, true}} {
		d := newDeltaSpace(t)
		d.opts.SSD.DirBudgetBytes = int64(c.share * float64(buckets))
		d.open()
		d.train(0, rows)
		settle(t, d.tab)
		buckets = d.tab.Stats().DiskBytes
		d.train(0, changed)
		if err := d.snapshot(); err != nil {
			t.Fatal(err)
		}
		st := d.tab.Stats()
		if budget, n := d.opts.SSD.DirBudgetBytes, d.onDisk(); n > budget && budget > 0 || st.DiskBytes != n {
			t.Errorf("%d bytes on disk, counted are %d, the budget is %d", n, st.DiskBytes, budget)
		}
		d.close()
		d.open()
		if st := d.tab.Stats(); st.Rows != rows || (st.RestoredRows == changed) == c.hot {
			t.Errorf("a budget of %d bytes, %d taken: %d rows, %d of them restored", d.opts.SSD.DirBudgetBytes, st.DiskBytes, st.Rows, st.RestoredRows)
		}
		d.check()
		d.close()
	}
}
