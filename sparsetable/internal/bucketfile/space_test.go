package bucketfile

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"aibox/sparsetable/internal/blockio/blocktest"
)

// TestBudget appends until the directory's budget is used up. Nothing may be written beyond it,
// urgent appends may use the last part, and moving buckets out of files with dead ones must make
// room again.
func TestBudget(t *testing.T) {
	const budget = 400 << 10
	opts := smallOptions(3)
	opts.BudgetBytes = []int64{budget}
	opts.UrgentBytes = 64 << 10
	m := newModel(t, 1, 1, opts)
	m.mustOpen()
	fill := func(urgent bool) {
		for i := 0; ; i++ {
			err := m.append(uint32(i%300), 20, urgent)
			var full *NoSpaceError
			if errors.As(err, &full) {
				if !errors.Is(err, ErrNoSpace) || full.Dir != "dir0" || full.UsedBytes+full.NeedBytes > budget || full.BudgetBytes == 0 {
					t.Errorf("error %+v", full)
				}
				return
			}
			must(t, err)
			if i > 10000 {
				t.Fatal("the budget is never used up")
			}
		}
	}
	_, err := m.set.Hold(77) // nothing yet
	must(t, err)
	for i := range uint32(50) { // and these are held, so the files stay
		must(t, m.append(i, 20, false))
	}
	must(t, m.snapshot())
	fill(false)
	before, _ := m.set.Space()
	fill(true)
	after, _ := m.set.Space()
	if after.TotalBytes <= before.TotalBytes || after.TotalBytes > budget {
		t.Errorf("%d bytes before the urgent appends, %d after, budget %d", before.TotalBytes, after.TotalBytes, budget)
	}
	must(t, m.set.Flush(t.Context()))
	onDevice := 0
	names, err := m.mem[0].List()
	must(t, err)
	for _, name := range names {
		onDevice += len(m.mem[0].Bytes(name))
	}
	if onDevice > budget {
		t.Errorf("%d bytes on the device, budget %d", onDevice, budget)
	}
	// Slots 100 and up are given up: with urgent moves the rest fits again.
	for slot := range m.index {
		if slot >= 100 {
			must(t, m.replace(slot, content{}))
		}
	}
	waitFor(t, "dead files are deleted", func() bool {
		sp, _ := m.set.Space()
		return sp.TotalBytes < after.TotalBytes-64<<10
	})
	for range 3 {
		must(t, m.compact())
	}
	waitFor(t, "emptied files are deleted", func() bool {
		sp, _ := m.set.Space()
		return sp.TotalBytes < budget-opts.UrgentBytes-32<<10
	})
	must(t, m.append(1, 20, false))
	must(t, m.checkIndex(m.index))
	m.close()
}

// TestDeletionMakesRoom appends right after all buckets of a full directory were released. The
// append must wait until their files are deleted, with a budget and with a disk of limited size.
func TestDeletionMakesRoom(t *testing.T) {
	const bytes = 512 << 10
	for _, budget := range []int64{0, bytes} {
		m := newModel(t, 1, 1, smallOptions(3))
		if budget > 0 {
			m.opts.BudgetBytes = []int64{budget}
		} else {
			m.mem[0].SetCapacity(bytes)
		}
		m.mustOpen()
		for range 20 {
			slot := uint32(0)
			for ; ; slot++ {
				err := m.append(slot, 20, false)
				if errors.Is(err, ErrNoSpace) {
					break
				}
				must(t, err)
				if slot%30 == 29 {
					must(t, m.set.Flush(t.Context())) // the disk is full once it is written
				}
			}
			if slot < 500 {
				t.Fatalf("%d buckets fill %d bytes", slot, bytes)
			}
			for i := range slot {
				must(t, m.replace(i, content{}))
			}
			must(t, m.append(0, 20, false))
			must(t, m.replace(0, content{}))
		}
		m.close()
	}
}

// TestDeletionFails checks that a file that cannot be deleted is reported once, however often that
// is tried, and that a file that no longer exists, as in a lost directory, is not reported.
func TestDeletionFails(t *testing.T) {
	for _, gone := range []bool{false, true} {
		var log strings.Builder
		opts := smallOptions(3)
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		m := newModel(t, 1, 1, opts)
		m.mustOpen()
		tries := map[string]int{} // by file
		m.mem[0].Inject(func(op blocktest.Op) (f blocktest.Fault) {
			if op.Kind == blocktest.Remove {
				tries[op.Name]++
				f.Err = syscall.EIO
				if gone {
					f.Err = fs.ErrNotExist
				}
			}
			return f
		})
		for range 20 {
			for slot := range uint32(300) {
				must(t, m.append(slot, 20, false)) // takes the place of what the slot had
			}
			must(t, m.set.Flush(t.Context()))
		}
		m.close() // tries is not used any more
		most := 0
		for name, n := range tries {
			most = max(most, n)
			want := 1
			if gone {
				want = 0
			}
			if have := strings.Count(log.String(), name+" "); have != want {
				t.Errorf("gone %v: %d lines in the log about %s, which was tried %d times", gone, have, name, n)
			}
		}
		if gone != (most == 1) {
			t.Errorf("gone %v: deletions were tried %v times", gone, tries)
		}
	}
}

// TestDiskFull fills the file system before a write, and then during one.
func TestDiskFull(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	m.mem[0].SetCapacity(10 << 10) // less than an append buffer
	var full *NoSpaceError
	if err := m.append(1, 20, false); !errors.As(err, &full) || full.FreeBytes != 10<<10 {
		t.Errorf("append to a full disk: %v", err)
	}
	if s := m.mem[0].Stats(); s.Writes != 0 {
		t.Errorf("the device saw %+v", s)
	}

	m.mem[0].SetCapacity(0)
	for m.index[1].loc == 0 {
		must(t, m.append(1, 20, false))
	}
	m.mem[0].SetCapacity(4 << 10) // somebody else took the space
	for range 2 {
		err := m.set.Flush(t.Context())
		if !errors.Is(err, ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "dir0, whose file system has ") {
			t.Errorf("flush to a full disk: %v", err)
		}
		must(t, m.checkIndex(m.index)) // from the buffer
	}
	if err := m.append(2, 20, false); !errors.Is(err, ErrNoSpace) {
		t.Errorf("append after a failed write: %v", err)
	}
	m.mem[0].SetCapacity(0)
	must(t, m.snapshot())
	must(t, m.append(2, 20, false))
	m.crash()
	m.mustOpen()
	must(t, m.checkIndex(m.index))
	m.close()
}

// TestBudgetError checks that the error names the budget as it was configured, and all space that
// counts against it.
func TestBudgetError(t *testing.T) {
	o := smallOptions(3)
	o.BudgetBytes, o.UrgentBytes = []int64{400 << 10}, 64<<10
	m := newModel(t, 1, 1, o)
	m.mustOpen()
	defer m.close()
	m.set.Charge(0, 300<<10)
	var full *NoSpaceError
	var err error
	for i := uint32(0); err == nil; i++ {
		err = m.append(i, 20, false)
	}
	if !errors.As(err, &full) || full.BudgetBytes != 400<<10 || full.OtherBytes != 300<<10 || full.ReserveBytes != 64<<10 || full.UsedBytes == 0 || full.UsedBytes > 36<<10 {
		t.Fatalf("append: %v", err)
	}
	// The rest, and no more, is to be had for another file.
	_, each := m.set.Space()
	rest := each[0].BudgetBytes - each[0].OtherBytes - (each[0].TotalBytes+4095)/4096*4096
	if err := m.set.Claim(0, rest+1, 1<<30); !errors.As(err, &full) || full.NeedBytes != rest+1 || full.FreeBytes >= 0 {
		t.Errorf("a claim of one byte too much: %v", err)
	}
	must(t, m.set.Claim(0, rest, 1<<30))
	if _, each := m.set.Space(); each[0].OtherBytes != 300<<10+rest {
		t.Errorf("%+v after a claim of %d bytes", each[0], rest)
	}
	for _, part := range []string{"budget is 409600 bytes", "other files take 307200", "65536 are kept"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

// TestDiskReserve checks that only urgent appends may use the last space of a file system, and that
// the error of other appends says both how much is free and how much is reserved.
func TestDiskReserve(t *testing.T) {
	o := smallOptions(3)
	o.ReserveBytes = 1 << 20
	m := newModel(t, 1, 1, o)
	m.mustOpen()
	defer m.close()
	m.mem[0].SetCapacity(1 << 20)
	var full *NoSpaceError
	err := m.append(1, 20, false)
	if !errors.As(err, &full) || full.FreeBytes != 1<<20 || full.ReserveBytes != 1<<20 {
		t.Fatalf("append: %v", err)
	}
	for _, part := range []string{"1048576 bytes left", "1048576 must stay free"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	must(t, m.append(1, 20, true))
}
