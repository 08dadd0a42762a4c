package ssd_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDFull fills a directory's budget: first with what snapshots keep, then with rows in use.
// The error must come before the budget is exceeded. All rows must still be readable and can be
// saved, and training continues once there is room.
func TestSSDFull(t *testing.T) {
	const budget, batch = 6 << 20, 200
	for _, devices := range []int{1, 2} {
		t.Run(fmt.Sprint(devices, " directories"), func(t *testing.T) {
			f := newFaulty(t, faultScript{layout: faultyLayout}, 1)
			f.disk = newSSDDisk(devices)
			f.opts.SSD = sparsetable.SSDOptions{DirBudgetBytes: budget}
			for i := range devices {
				f.opts.SSD.Dirs = append(f.opts.SSD.Dirs, fmt.Sprintf("/ssd%d", i))
			}
			f.opts.MemoryBytes = smallest(faultyLayout, f.opts.SSD, 1500) + 64<<10
			var err error
			if f.table, err = f.open(f.opts); err != nil {
				t.Fatal(err)
			}
			inBudget := func() error {
				for i, dev := range f.disk.devices {
					names, err := dev.List()
					bytes := 0
					for _, n := range names {
						bytes += len(dev.Bytes(n))
					}
					if bytes > budget || err != nil {
						return fmt.Errorf("%d bytes in directory %d: %w", bytes, i, err)
					}
				}
				return nil
			}
			next := 0
			// grow trains rows, new ones and old ones, until it fails.
			grow := func(passes int) error {
				for range passes {
					keys := make([]uint64, 0, batch)
					for i := range batch / 2 {
						keys = append(keys, tabletest.SpreadKey(next+i))
					}
					if old := next / 2; old > batch/2 {
						for _, i := range f.rng.Perm(old)[:batch/2] {
							keys = append(keys, tabletest.SpreadKey(i))
						}
					}
					ws, err := f.table.Pull(t.Context(), keys, sparsetable.PullCreate)
					if st := f.table.Stats(); st.DiskBytes > int64(devices)*budget {
						t.Fatalf("%d bytes on disk", st.DiskBytes)
					}
					if err := inBudget(); err != nil {
						t.Fatal(err)
					}
					if err != nil {
						return err
					}
					next += batch / 2
					for i, k := range keys {
						row := ws.Row(i)
						if row[0] != f.rows[k] {
							t.Fatalf("key %x holds %v, want %v", k, row[0], f.rows[k])
						}
						row[0]++
						f.rows[k] = row[0]
						faultyLayout.SetStats(row, sparsetable.RowStats{Count: 1})
					}
					ws.Release()
				}
				return nil
			}
			full := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, sparsetable.ErrNoSpace) {
					t.Fatalf("%s: %v", what, err)
				}
				if err := f.equal(f.table, f.rowStates); err != nil {
					t.Fatalf("%s, then reading: %v", what, err)
				}
				st := f.table.Stats()
				t.Logf("%s after %d rows, %d of %d bytes live: %v", what, len(f.rows), st.DiskLiveBytes, st.DiskBytes, err)
			}
			var ids []uint64
			// save takes a snapshot, and notes its error.
			save := func() error {
				p, err := f.table.Snapshot(t.Context(), nil)
				if err != nil {
					return err
				}
				info, err := p.Wait()
				if err != nil {
					t.Fatalf("the error of a snapshot comes late: %v", err)
				}
				ids = append(ids, info.ID)
				return inBudget()
			}
			drop := func() {
				t.Helper()
				if err := f.table.DropSnapshot(ids[0]); err != nil {
					t.Fatal(err)
				}
				ids = ids[1:]
			}
			// settles tries until it succeeds: what was freed is free soon.
			settles := func(what string) {
				t.Helper()
				for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
					err := grow(1)
					if err == nil {
						return
					}
					if time.Now().After(end) || !errors.Is(err, sparsetable.ErrNoSpace) {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
			for err = nil; err == nil && len(ids) < 1000; {
				if err = save(); err == nil {
					err = grow(3)
				}
			}
			full("snapshots fill it", err)
			for err = save(); errors.Is(err, sparsetable.ErrNoSpace) && len(ids) > 0; err = save() {
				full("a snapshot has no room", err)
				drop()
			}
			if err != nil {
				t.Fatal(err)
			}
			for len(ids) > 0 {
				drop()
			}
			settles("snapshots are gone")
			full("rows fill it", grow(1<<20))
			if st := f.table.Stats(); st.DiskLiveBytes < int64(devices)*budget/3 {
				t.Errorf("%d bytes live: compaction should have made room", st.DiskLiveBytes)
			}
			if n, err := f.table.Expire(t.Context(), sparsetable.ExpiryRule{MinShow: 1}); err != nil {
				t.Fatalf("Expire of %d rows after %d: %v", len(f.rows), n, err)
			}
			clear(f.rows)
			if err := f.equal(f.table, f.rowStates); err != nil {
				t.Fatalf("after Expire: %v", err)
			}
			settles("rows are gone")
			if err := errors.Join(save(), f.equal(f.table, f.rowStates), f.table.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSSDNoRoom checks that a new table that could not be saved is refused when it is opened, with
// an error that names the directory and the bytes. A table that has rows is opened all the same.
func TestSSDNoRoom(t *testing.T) {
	const reserved = 64 << 20
	f := newFaulty(t, faultScript{layout: faultyLayout}, 1)
	f.disk = newSSDDisk(2)
	f.opts.SSD = sparsetable.SSDOptions{Dirs: []string{"/ssd0", "/ssd1"}}
	open := func() error {
		tab, err := f.open(f.opts)
		if err != nil {
			return err
		}
		defer tab.Close() //nolint:errcheck // only opening it counts
		tabletest.Commit(t, tab, nil)
		return nil
	}
	full := f.disk.devices[1]
	full.SetCapacity(reserved)
	err := open()
	if !errors.Is(err, sparsetable.ErrNoSpace) || !strings.Contains(err.Error(), "/ssd1") || !strings.Contains(err.Error(), fmt.Sprint(reserved, " bytes left")) {
		t.Errorf("a new table in a full directory: %v", err)
	}
	full.SetCapacity(0)
	f.opts.SSD.DirBudgetBytes = 100 << 10
	if err := open(); !errors.Is(err, sparsetable.ErrNoSpace) || !strings.Contains(err.Error(), fmt.Sprint("budget is ", 100<<10)) {
		t.Errorf("a new table with a small budget: %v", err)
	}
	f.opts.SSD.DirBudgetBytes = 0
	if err := open(); err != nil {
		t.Fatal(err)
	}
	full.SetCapacity(reserved)
	if err := open(); err != nil {
		t.Errorf("a table with a snapshot in a full directory: %v", err)
	}
}

// TestSSDFullNoSplits checks that if slots cannot be split because the disk is full, so that
// buckets would get too large, the error of Pull says that, and not that the budget is too small.
func TestSSDFullNoSplits(t *testing.T) {
	f := newFaulty(t, faultScript{layout: faultyLayout, keys: 3000, batch: 100, resident: 3000}, 1)
	var err error
	if f.table, err = f.open(f.opts); err != nil {
		t.Fatal(err)
	}
	defer f.table.Close()
	f.train()
	if err := f.table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ssd.SetShape(f.table, 2, 4, 4, 0)
	f.setFaults(func(op faultyOp) blocktest.Fault {
		if op.writesRows() {
			return blocktest.Fault{Err: syscall.ENOSPC}
		}
		return blocktest.Fault{}
	})
	for len(f.errs) == 0 {
		f.train()
	}
	if err := f.errs[0]; !errors.Is(err, sparsetable.ErrNoSpace) {
		t.Error(err)
	}
}
