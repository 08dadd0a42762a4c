package ssd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// bulkTable is a table of KindSSD for which even small imports count as large, together with the
// rows that it must have.
type bulkTable struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	disk  *ssdDisk
	opts  sparsetable.Options
	arena int64
	tab   sparsetable.Table
	rows  map[uint64]float32
	saved map[uint64]float32
}

func newBulkTable(t *testing.T, seed uint64, dirs int, arena, spare int64) *bulkTable {
	t.Helper()
	b := &bulkTable{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 77)), disk: newSSDDisk(dirs), arena: arena, rows: map[uint64]float32{}}
	b.opts = sparsetable.Options{Layout: stressLayout}
	for i := range dirs {
		b.opts.SSD.Dirs = append(b.opts.SSD.Dirs, fmt.Sprintf("/ssd%d", i))
	}
	b.opts.MemoryBytes = smallest(stressLayout, b.opts.SSD, 1500) + spare
	b.open()
	return b
}

func (b *bulkTable) open() {
	b.t.Helper()
	o := b.opts
	o.FS = b.disk
	tab, err := ssdKindWith(o.SSD).Open(b.t.Context(), o)
	if err != nil {
		b.fatal("open: %v", err)
	}
	ssd.SetBulk(tab, 64, b.arena, 4096)
	b.tab = tab
}

func (b *bulkTable) fatal(format string, args ...any) {
	b.t.Helper()
	b.t.Fatalf("seed %d: %s", b.seed, fmt.Sprintf(format, args...))
}

func (b *bulkTable) close() {
	b.t.Helper()
	if err := b.tab.Close(); err != nil {
		b.fatal("close: %v", err)
	}
	if n := b.disk.OpenFiles(); n != 0 {
		b.fatal("%d files are still open", n)
	}
}

// check compares the table with the expected rows: exactly want, except for the keys of maybe,
// which may have one of these values instead.
func (b *bulkTable) check(want map[uint64]float32, maybe map[uint64][]float32) {
	b.t.Helper()
	seen := map[uint64]float32{}
	err := b.tab.Scan(b.t.Context(), func(key uint64, row []float32) error {
		if _, twice := seen[key]; twice {
			return fmt.Errorf("key %#x comes twice", key)
		}
		seen[key] = row[0]
		if old, ok := want[key]; ok && old == row[0] {
			return nil
		}
		if slices.Contains(maybe[key], row[0]) {
			return nil
		}
		return fmt.Errorf("key %#x holds %v, want %v or %v", key, row[0], want[key], maybe[key])
	})
	if err != nil {
		b.fatal("%v", err)
	}
	for k, v := range want {
		if _, ok := seen[k]; !ok {
			b.fatal("key %#x is lost, which held %v", k, v)
		}
	}
	if maybe != nil {
		b.rows = seen
	}
	if err := ssd.CheckIndex(b.tab); err != nil {
		b.fatal("%v", err)
	}
	if st := b.tab.Stats(); st.MemoryBytes > st.BudgetBytes {
		b.fatal("%d bytes of memory with a budget of %d", st.MemoryBytes, st.BudgetBytes)
	}
	if n := ssd.Borrowed(b.tab); n != 0 {
		b.fatal("the cache has not got back %d bytes", n)
	}
	for _, f := range b.disk.Files() {
		if strings.HasSuffix(f, ".spool") {
			b.fatal("%s is left", f)
		}
	}
}

// train gives keys of the table, and new keys, another value, so that their rows are dirty.
func (b *bulkTable) train(n, keys int) {
	b.t.Helper()
	at := b.rng.Perm(keys)[:min(n, keys)]
	ks := make([]uint64, len(at))
	for i, k := range at {
		ks[i] = tabletest.SpreadKey(k)
	}
	ws, err := b.tab.Pull(b.t.Context(), ks, sparsetable.PullCreate)
	if err != nil {
		b.fatal("pull: %v", err)
	}
	for i, k := range ks {
		if i%8 == 0 {
			continue // a placeholder, or as it was
		}
		v := float32(b.rng.IntN(1 << 20))
		ws.Row(i)[0] = v
		b.rows[k] = v
		stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 2})
	}
	ws.Release()
}

func (b *bulkTable) snapshot() {
	b.t.Helper()
	p, err := b.tab.Snapshot(b.t.Context(), nil)
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		b.fatal("snapshot: %v", err)
	}
	b.saved = map[uint64]float32{}
	maps.Copy(b.saved, b.rows)
}

// crash reopens the table as a crash left it, that is, as it was last saved.
func (b *bulkTable) crash() {
	b.t.Helper()
	disk := b.disk.Crash(b.rng).(*ssdDisk)
	_ = b.tab.Close() // of the disk before
	b.disk = disk
	b.open()
	b.rows = map[uint64]float32{}
	maps.Copy(b.rows, b.saved)
	b.check(b.rows, nil)
}

// bulkRows is a source of n rows whose keys are in a range. Some keys occur often, and some rows
// are placeholders.
type bulkRows struct {
	b      *bulkTable
	n, of  int
	before func(at int) error // called before each row
	last   map[uint64]float32
	values map[uint64][]float32 // all that came
	count  int64
	row    []float32
	at     int
}

func (b *bulkTable) source(n, of int) *bulkRows {
	return &bulkRows{b: b, n: n, of: of, last: map[uint64]float32{}, values: map[uint64][]float32{}, row: make([]float32, stressLayout.Words())}
}

func (s *bulkRows) Next() (uint64, []float32, error) {
	if s.before != nil {
		if err := s.before(s.at); err != nil {
			return 0, nil, err
		}
	}
	if s.at == s.n {
		return 0, nil, io.EOF
	}
	s.at++
	rng := s.b.rng
	i := rng.IntN(s.of)
	if rng.IntN(8) == 0 {
		i = rng.IntN(1 + s.of/100)
	}
	key, v := tabletest.SpreadKey(i), float32(rng.IntN(1<<20))
	count := uint32(1)
	if rng.IntN(20) == 0 {
		count = 0
	} else {
		s.last[key] = v
		s.values[key] = append(s.values[key], v)
		s.count++
	}
	s.row[0] = v
	stressLayout.SetStats(s.row, sparsetable.RowStats{Count: count})
	return key, s.row, nil
}

// importRows imports from src, and fails the test if that fails.
func (b *bulkTable) importRows(src *bulkRows) {
	b.t.Helper()
	n, err := b.tab.Import(b.t.Context(), src)
	if err != nil || n != src.count {
		b.fatal("%d rows imported, want %d: %v", n, src.count, err)
	}
	b.keep(src)
}

func (b *bulkTable) keep(src *bulkRows) {
	maps.Copy(b.rows, src.last)
}

// TestSSDImport runs random large imports, with training, snapshots and crashes in between, and
// compares the table with a map.
func TestSSDImport(t *testing.T) {
	for _, c := range []struct {
		name         string
		dirs         int
		arena, spare int64
		dirBudget    int64
	}{
		{"one pass", 1, 1 << 20, 4 << 20, 0},
		{"two directories", 2, 1 << 20, 4 << 20, 0},
		{"three directories", 3, 1 << 20, 4 << 20, 0},
		{"spooled again", 2, 96 << 10, 1 << 20, 0},
		{"little memory", 1, 64 << 10, 300 << 10, 0},
		{"no room for a second round", 1, 1300 << 10, 3 << 20, 6 << 20},
		{"rounds", 1, 128 << 10, 1 << 20, 6 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			seeds, first := uint64(3), testseed.Of(t)
			if testing.Short() {
				seeds = 1
			}
			for i := range seeds {
				b := newBulkTable(t, first+i, c.dirs, c.arena, c.spare)
				if c.dirBudget > 0 {
					b.close()
					b.opts.SSD.DirBudgetBytes, b.opts.SSD.MaxSpaceAmplification = c.dirBudget, 1.5
					b.open()
				}
				b.importRows(b.source(60000, 12000))
				b.snapshot()
				for range 6 {
					keys := 1 + b.rng.IntN(15000)
					switch b.rng.IntN(6) {
					case 0:
						b.train(1000, keys)
					case 1:
						b.snapshot()
					case 2:
						b.crash()
					default:
						b.importRows(b.source(b.rng.IntN(25000), keys))
						if b.rng.IntN(2) == 0 {
							b.train(500, keys) // the cache has what was imported
						}
					}
					b.check(b.rows, nil)
				}
				b.close()
			}
		})
	}
}

// TestSSDImportSourceFails checks that the table has all rows that the source yielded before its
// error.
func TestSSDImportSourceFails(t *testing.T) {
	boom := errors.New("boom")
	for _, at := range []int{0, 1, 1023, 1024, 5000, 12345} {
		b := newBulkTable(t, uint64(at), 2, 128<<10, 1<<20)
		b.importRows(b.source(3000, 4000))
		b.train(500, 4000)
		src := b.source(20000, 9000)
		src.before = func(i int) error {
			if i == at {
				return boom
			}
			return nil
		}
		n, err := b.tab.Import(t.Context(), src)
		if !errors.Is(err, boom) || n != src.count {
			t.Fatalf("%d rows before an error at %d, %d of them trained: %v", n, at, src.count, err)
		}
		b.keep(src)
		b.check(b.rows, nil)
		b.close()
	}
}

// TestSSDImportCanceled checks that a canceled import ends, and that the table continues to work.
func TestSSDImportCanceled(t *testing.T) {
	for _, at := range []int{0, 3000, 19999, 20000} {
		b := newBulkTable(t, uint64(at), 2, 128<<10, 1<<20)
		b.importRows(b.source(3000, 4000))
		ctx, cancel := context.WithCancel(t.Context())
		src := b.source(20000, 9000)
		src.before = func(i int) error {
			if i == at {
				cancel()
			}
			return nil
		}
		n, err := b.tab.Import(ctx, src)
		if !errors.Is(err, context.Canceled) || n >= src.count && n > 0 {
			t.Fatalf("%d of %d rows imported, canceled at %d: %v", n, src.count, at, err)
		}
		b.check(b.rows, src.values)
		b.importRows(b.source(20000, 9000))
		b.check(b.rows, nil)
		b.close()
	}
}

// TestSSDImportFails makes the n-th operation of an import fail. After that the table must have
// only rows from before and from the import, the next import must succeed once the device works
// again, and after a crash the table must be as in its snapshot.
func TestSSDImportFails(t *testing.T) {
	step := 5
	if testing.Short() {
		step = 29
	}
	first := 1 + int(testseed.Of(t)%uint64(step))
	for _, sticky := range []bool{false, true} {
		for n := first; ; n += step {
			b := newBulkTable(t, uint64(n), 2, 128<<10, 1<<20)
			b.importRows(b.source(3000, 4000))
			b.train(300, 4000)
			b.snapshot()
			src := b.source(6000, 5000)
			b.disk.FailAt(n, sticky)
			_, err := b.tab.Import(t.Context(), src)
			failed := b.disk.Failed()
			b.disk.FailAt(0, false)
			if err != nil && !failed {
				t.Fatalf("operation %d: %v", n, err)
			}
			if err != nil && !errors.Is(err, tabletest.ErrInjected) {
				t.Fatalf("operation %d: the error hides its cause: %v", n, err)
			}
			if err == nil {
				b.keep(src)
			}
			// What the background met comes with the next call, once.
			if _, err := b.tab.Import(t.Context(), b.source(0, 1)); err != nil && !errors.Is(err, tabletest.ErrInjected) {
				t.Fatal(err)
			}
			if err == nil {
				b.checkFiles(b.rows, nil)
			} else {
				b.checkFiles(b.rows, src.values)
			}
			// A write that failed is tried again, and its error is met once more.
			for try := 0; ; try++ {
				src := b.source(6000, 5000)
				_, err := b.tab.Import(t.Context(), src)
				if err == nil {
					b.keep(src)
					b.checkFiles(b.rows, nil)
					break
				}
				if try == 3 || !errors.Is(err, tabletest.ErrInjected) {
					t.Fatalf("operation %d: the device works again, yet: %v", n, err)
				}
				b.checkFiles(b.rows, src.values)
			}
			b.crash()
			b.close()
			if !failed {
				break
			}
		}
	}
}

// checkFiles is check, except that a spool that could not be removed may remain until the table is
// opened.
func (b *bulkTable) checkFiles(want map[uint64]float32, maybe map[uint64][]float32) {
	b.t.Helper()
	for i, dev := range b.disk.devices {
		for _, f := range b.disk.Files() {
			if name, ok := strings.CutPrefix(f, fmt.Sprintf("%d/", i)); ok && strings.HasSuffix(name, ".spool") {
				if err := dev.Remove(name); err != nil {
					b.fatal("%v", err)
				}
			}
		}
	}
	b.check(want, maybe)
}

// TestSSDImportCrash lets the machine crash during an import.
func TestSSDImportCrash(t *testing.T) {
	for seed := range uint64(12) {
		b := newBulkTable(t, seed, 2, 128<<10, 1<<20)
		b.importRows(b.source(3000, 4000))
		b.train(300, 4000)
		b.snapshot()
		at := b.rng.IntN(400)
		var ops atomic.Int64 // of both devices, which work side by side
		var after *ssdDisk
		for _, dev := range b.disk.devices {
			dev.Inject(func(blocktest.Op) blocktest.Fault {
				if ops.Add(1) == int64(at) {
					return blocktest.Fault{Err: tabletest.ErrInjected}
				}
				return blocktest.Fault{}
			})
		}
		_, err := b.tab.Import(t.Context(), b.source(20000, 9000))
		t.Logf("seed %d: operation %d of %d: %v", seed, at, ops.Load(), err)
		after = b.disk.Crash(b.rng).(*ssdDisk)
		_ = b.tab.Close()
		b.disk = after
		b.open()
		b.rows = b.saved
		b.check(b.rows, nil)
		b.close()
	}
}

// TestSSDImportSpoolDamaged checks that a bit of a spool that the device inverts is detected and
// never gets into a row.
func TestSSDImportSpoolDamaged(t *testing.T) {
	for nth := range 8 {
		b := newBulkTable(t, uint64(nth), 1, 128<<10, 1<<20)
		b.importRows(b.source(3000, 4000))
		reads := 0
		b.disk.devices[0].Inject(func(op blocktest.Op) blocktest.Fault {
			if op.Kind == blocktest.Read && strings.HasSuffix(op.Name, ".spool") {
				reads++
				return blocktest.Fault{FlipBit: reads == nth*9+1}
			}
			return blocktest.Fault{}
		})
		src := b.source(20000, 9000)
		_, err := b.tab.Import(t.Context(), src)
		var bad *sparsetable.CorruptionError
		if reads <= nth*9 {
			t.Fatalf("%d reads of the spool", reads)
		}
		if err == nil { // it was in the padding
			b.keep(src)
			b.check(b.rows, nil)
		} else if !errors.As(err, &bad) || !strings.HasSuffix(bad.File, ".spool") {
			t.Fatalf("read %d: %v", nth*9, err)
		} else {
			b.check(b.rows, src.values)
		}
		b.close()
	}
}

// TestSSDImportCost checks that a large import writes each row about once and makes as many slots
// as the number of rows requires, also if the table already has the keys.
func TestSSDImportCost(t *testing.T) {
	const rows = 40000
	b := newBulkTable(t, 1, 2, 1<<20, 8<<20)
	slots := int64(0)
	for round := range 4 {
		before := b.tab.Stats()
		if n, err := b.tab.Import(t.Context(), newCountSource(stressLayout, rows)); n != rows || err != nil {
			t.Fatal(n, err)
		}
		st := b.tab.Stats()
		written := float64(st.WrittenBytes-before.WrittenBytes) / float64(rows*(8+stressLayout.Bytes()))
		t.Logf("import %d: %d rows in %d slots, %.2f bytes written per byte", round, st.Rows, st.Slots, written)
		if st.Rows != rows {
			t.Errorf("import %d: %d rows", round, st.Rows)
		}
		if round == 0 {
			slots = st.Slots
			if st.Splits < slots-1 || written > 2.6 { // once to a spool; units of the device are not full
				t.Errorf("%d slots by %d splits, %.2f bytes written per byte", slots, st.Splits, written)
			}
		} else if st.Slots > slots+slots/10 || written > 4 { // and compaction
			t.Errorf("import %d: %d slots, were %d; %.2f bytes written per byte", round, st.Slots, slots, written)
		}
	}
	b.close()
}
