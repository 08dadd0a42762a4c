package ssd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
)

// diskMeter tracks the size of the files on a disk.
type diskMeter struct {
	sync.Mutex
	files map[string]int64
	total int64
	peak  int64
	spool int64 // bytes written to spools
}

func newDiskMeter(disk *ssdDisk) *diskMeter {
	m := &diskMeter{files: map[string]int64{}}
	for i, dev := range disk.devices {
		dev.Inject(func(op blocktest.Op) blocktest.Fault {
			m.Lock()
			defer m.Unlock()
			name := fmt.Sprintf("%d/%s", i, op.Name)
			size := m.files[name]
			switch op.Kind {
			case blocktest.Write:
				m.files[name] = max(size, op.Offset+int64(op.Bytes))
				if strings.HasSuffix(name, ".spool") {
					m.spool += int64(op.Bytes)
				}
			case blocktest.Remove:
				delete(m.files, name)
			}
			m.total += m.files[name] - size
			m.peak = max(m.peak, m.total)
			return blocktest.Fault{}
		})
	}
	return m
}

// read returns what was counted so far. The background writer may continue to write meanwhile.
func (m *diskMeter) read() (peak, total, spool int64) {
	m.Lock()
	defer m.Unlock()
	return m.peak, m.total, m.spool
}

// TestSSDImportSpace checks that importing into an empty table never takes much more disk space
// than the finished table, however little memory the import has, and that each row is written into
// only one bucket.
func TestSSDImportSpace(t *testing.T) {
	const rows = 60_000
	for _, c := range []struct {
		name         string
		dirs         int
		arena, spare int64
	}{
		{"partitions fit", 1, 2 << 20, 6 << 20},
		{"two directories", 2, 2 << 20, 6 << 20},
		{"partitions are little larger", 1, 400 << 10, 2 << 20},
		{"and a little more", 1, 320 << 10, 2 << 20},
		{"spooled again", 1, 256 << 10, 2 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBulkTable(t, 1, c.dirs, c.arena, c.spare)
			m := newDiskMeter(b.disk)
			if n, err := b.tab.Import(t.Context(), newCountSource(stressLayout, rows)); n != rows || err != nil {
				t.Fatal(n, err)
			}
			st := b.tab.Stats()
			peak, total, spool := m.read()
			buckets := st.ImportedBytes - spool
			t.Logf("at most %d bytes, %d in the end, %d live, %d written", peak, total, st.DiskLiveBytes, buckets)
			// A part of the spool is there as long as its group's other parts.
			if limit := st.DiskLiveBytes + st.DiskLiveBytes/8 + 256<<10; peak > limit {
				t.Errorf("%d bytes on disk at most, %d live in the end: want no more than %d", peak, st.DiskLiveBytes, limit)
			}
			if buckets != st.DiskLiveBytes {
				t.Errorf("%d bytes of buckets written, %d live", buckets, st.DiskLiveBytes)
			}
			b.close()
		})
	}
}

// TestSSDImportBudget checks that a directory's budget limits the spool and the buckets together,
// and that a budget little larger than the table suffices to import all rows in one round.
func TestSSDImportBudget(t *testing.T) {
	const rows = 80_000
	b := newBulkTable(t, 1, 1, 1<<20, 6<<20)
	if _, err := b.tab.Import(t.Context(), newCountSource(stressLayout, rows)); err != nil {
		t.Fatal(err)
	}
	live := b.tab.Stats().DiskLiveBytes
	b.close()
	for _, share := range []int64{2, 3} {
		budget := share * live
		b = newBulkTable(t, 1, 1, 1<<20, 6<<20)
		b.close()
		b.opts.SSD.DirBudgetBytes = budget
		b.open()
		m := newDiskMeter(b.disk)
		for round := range share - 1 {
			before := b.tab.Stats()
			if _, err := b.tab.Import(t.Context(), newCountSource(stressLayout, rows)); err != nil {
				t.Fatal(err)
			}
			st := b.tab.Stats()
			peak, _, spool := m.read()
			t.Logf("budget %d times the table, import %d: at most %d bytes, %d live, %d written", share, round, peak, st.DiskLiveBytes, st.WrittenBytes-before.WrittenBytes)
			if peak > budget {
				t.Errorf("import %d: %d bytes on disk, the budget is %d", round, peak, budget)
			}
			if buckets := st.ImportedBytes - spool; round == 0 && buckets != st.DiskLiveBytes {
				t.Errorf("%d bytes of buckets written, %d live", buckets, st.DiskLiveBytes)
			}
			if st.Rows != rows {
				t.Errorf("%d rows", st.Rows)
			}
		}
		b.close()
	}
}

// TestSSDImportFull imports more than the file system, or the budget, has room for. The import must
// fail before it tries to write that, the table must keep what it had, and it must accept rows
// again when there is room.
func TestSSDImportFull(t *testing.T) {
	for _, budget := range []bool{false, true} {
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			const limit, reserved = 4 << 20, 64 << 20
			b := newBulkTable(t, 3, 1, 256<<10, 2<<20)
			b.close()
			if budget {
				b.opts.SSD.DirBudgetBytes = limit
			}
			b.open()
			b.importRows(b.source(6000, 6000))
			b.snapshot()
			b.train(500, 4000)
			dev := b.disk.devices[0]
			if !budget {
				dev.SetCapacity(limit + reserved)
			}
			m := newDiskMeter(b.disk)
			src := b.source(150_000, 150_000)
			n, err := b.tab.Import(t.Context(), src)
			if !errors.Is(err, sparsetable.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d rows imported, then: %v", n, err)
			}
			peak, _, _ := m.read()
			t.Logf("%d rows imported, %d bytes on disk at most, then: %v", n, peak, err)
			if free, err := dev.Free(); err != nil || !budget && free < reserved/2 {
				t.Errorf("%d bytes are left: %v", free, err)
			}
			b.check(b.rows, src.values)
			dev.SetCapacity(0)
			if budget {
				b.crash()
			}
			b.importRows(b.source(3000, 3000))
			b.check(b.rows, nil)
			for _, f := range b.disk.Files() {
				if strings.HasSuffix(f, ".spool") {
					t.Errorf("%s is left", f)
				}
			}
			b.close()
		})
	}
}
