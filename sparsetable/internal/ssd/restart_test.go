package ssd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// gate is a device in memory that calls the test before it reads, writes or removes delta files.
type gate struct {
	*blocktest.Device
	read, write func(offset int64) error // nil: go on
	remove      func()                   // is called before it removes one; nil: not
}

func isDelta(name string) bool { return strings.HasSuffix(name, ".delta") }

func (g *gate) Submit(c *blockio.Completions, reads []*blockio.Read) {
	for _, r := range reads {
		if isDelta(r.File.Name()) && g.read != nil {
			_ = g.read(r.Offset)
		}
	}
	g.Device.Submit(c, reads)
}

func (g *gate) Remove(name string) error {
	if remove := g.remove; isDelta(name) && remove != nil {
		remove()
	}
	return g.Device.Remove(name)
}

func (g *gate) Create(name string) (blockio.File, error) {
	f, err := g.Device.Create(name)
	if err != nil || !isDelta(name) {
		return f, err
	}
	return &gatedFile{f, g}, nil
}

type gatedFile struct {
	blockio.File
	g *gate
}

func (f *gatedFile) WriteAt(b []byte, at int64) (int, error) {
	if f.g.write != nil {
		if err := f.g.write(at); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(b, at)
}

// restarted is a table that is closed and opened again, together with the rows that it must have.
type restarted struct {
	t      *testing.T
	dev    *gate
	others []blockio.Device // of the other directories
	fs     *vfs.MemFS
	opts   sparsetable.Options
	table  sparsetable.Table
	values map[uint64]float32
	rng    *rand.Rand
}

func newRestarted(t *testing.T, seed uint64, resident int64) *restarted {
	return newRestartedOf(t, seed, 512, resident)
}

// newRestartedOf is newRestarted on a device with that unit.
func newRestartedOf(t *testing.T, seed uint64, unit int, resident int64) *restarted {
	r := &restarted{t: t, fs: vfs.NewMem(), values: map[uint64]float32{}, rng: rand.New(rand.NewPCG(seed, 0))}
	r.dev = &gate{Device: blocktest.New(blocktest.Options{Dir: "/ssd", Seed: seed, UnitBytes: unit})}
	r.opts = sparsetable.Options{Layout: stressLayout, SSD: sparsetable.SSDOptions{Dirs: []string{"/ssd"}, CachePolicy: sparsetable.CachePolicies()[seed%3]}}
	r.opts.MemoryBytes = r.budget(resident)
	return r
}

func (r *restarted) budget(resident int64) int64 {
	return smallest(stressLayout, r.opts.SSD, resident) + 200<<10
}

func (r *restarted) tryOpen() (sparsetable.Table, error) {
	return openOn(r.t.Context(), r.opts, append([]blockio.Device{r.dev}, r.others...), r.fs)
}

func (r *restarted) open() {
	r.t.Helper()
	var err error
	if r.table, err = r.tryOpen(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *restarted) close() {
	r.t.Helper()
	if err := r.table.Close(); err != nil {
		r.t.Fatal(err)
	}
	if n := r.dev.OpenFiles(); n != 0 {
		r.t.Fatalf("%d files are still open", n)
	}
}

// someKeys returns n of the first keys.
func (r *restarted) someKeys(n, of int) []uint64 {
	keys := make([]uint64, 0, n)
	for _, i := range r.rng.Perm(of)[:n] {
		keys = append(keys, tabletest.SpreadKey(1+i))
	}
	return keys
}

func (r *restarted) pull(keys []uint64) *sparsetable.WorkingSet {
	r.t.Helper()
	ws, err := r.table.Pull(r.t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, k := range keys {
		if have := ws.Row(i)[0]; have != r.values[k] {
			r.t.Fatalf("key %x holds %v, want %v", k, have, r.values[k])
		}
	}
	return ws
}

// update changes the rows of a pinned set.
func (r *restarted) update(ws *sparsetable.WorkingSet, keys []uint64) {
	for i, k := range keys {
		r.values[k] = float32(r.rng.IntN(1 << 22))
		ws.Row(i)[0] = r.values[k]
		st := stressLayout.Stats(ws.Row(i))
		st.Count++
		stressLayout.SetStats(ws.Row(i), st)
	}
}

func (r *restarted) train(keys []uint64) {
	r.t.Helper()
	ws := r.pull(keys)
	r.update(ws, keys)
	ws.Release()
}

func (r *restarted) snapshot() {
	r.t.Helper()
	p, err := r.table.Snapshot(r.t.Context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.wait(p)
}

func (r *restarted) wait(p *sparsetable.PendingSnapshot) {
	r.t.Helper()
	info, err := p.Wait()
	if err != nil {
		r.t.Fatal(err)
	}
	if info.Rows != int64(len(r.values)) {
		r.t.Fatalf("a snapshot of %d rows, want %d", info.Rows, len(r.values))
	}
}

func (r *restarted) flush() {
	r.t.Helper()
	if err := r.table.(sparsetable.Flusher).Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if n := r.table.Stats().DirtyRows; n != 0 {
		r.t.Fatalf("%d rows are dirty after a flush", n)
	}
}

func (r *restarted) check(want map[uint64]float32) {
	r.t.Helper()
	seen := map[uint64]bool{}
	err := r.table.Scan(r.t.Context(), func(key uint64, row []float32) error {
		if v, ok := want[key]; !ok || v != row[0] || seen[key] {
			return fmt.Errorf("key %x holds %v, want %v", key, row[0], v)
		}
		seen[key] = true
		return nil
	})
	if err != nil || len(seen) != len(want) {
		r.t.Fatalf("%d rows, want %d: %v", len(seen), len(want), err)
	}
	if st := r.table.Stats(); st.MemoryBytes > st.BudgetBytes {
		r.t.Fatalf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
	}
}

// settle writes all rows to buckets and splits all slots that are due for splitting, so that the
// background writer has nothing to do. Rows that are trained next then stay dirty.
func settle(t *testing.T, tab sparsetable.Table) {
	t.Helper()
	err := ssd.Reshape(t.Context(), tab)
	if err == nil {
		err = tab.(sparsetable.Flusher).Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := tab.Stats().DirtyRows; n != 0 {
		t.Fatalf("%d rows are dirty after a flush", n)
	}
}

// grow trains rows so that the first ones are used most, many of them are clean, and the rest are
// dirty.
func (r *restarted) grow(rows int) {
	for from := 0; from < rows; from += 1000 {
		r.train(tabletest.KeysFrom(from, 1000))
	}
	for range 3 {
		for from := 0; from < rows/4; from += 1000 {
			r.train(tabletest.KeysFrom(from, 1000))
		}
	}
	settle(r.t, r.table)
	for from := 0; from < rows/10; from += 1000 {
		r.train(tabletest.KeysFrom(from*10, 1000))
	}
}

// TestSSDRestart opens a snapshot under budgets that hold all of its rows, a part of those that
// were in memory, or hardly any. The table must have the same rows, with as many of the most used
// rows in memory as there is room for.
func TestSSDRestart(t *testing.T) {
	const rows = 20_000
	for seed := range 6 {
		policy, unit := sparsetable.CachePolicies()[seed%3], []int{512, 4096}[seed/3]
		t.Run(fmt.Sprintf("%s, units of %d bytes", policy, unit), func(t *testing.T) {
			r := newRestartedOf(t, uint64(seed), unit, 2*rows)
			r.open()
			r.grow(rows)
			dirty := r.table.Stats().DirtyRows
			r.snapshot()
			r.close()
			for _, resident := range []int64{2 * rows, rows / 2, rows / 4, 1500} {
				r.opts.MemoryBytes = r.budget(resident)
				r.opts.ReadOnly = false
				r.open()
				ssd.WaitRestored(r.table)
				st := r.table.Stats()
				t.Logf("budget for %d rows: %d restored, %d dirty, %d in memory", resident, st.RestoredRows, st.DirtyRows, st.CacheRows)
				// A working set of the rows used most, which are in memory
				// wherever they fit with as many again.
				if resident >= rows/2 {
					before := st.Hits
					r.pull(tabletest.KeysFrom(0, 1000)).Release()
					if hits := r.table.Stats().Hits - before; hits < 990 {
						t.Errorf("budget for %d rows: %d of the 1000 rows used most are in memory", resident, hits)
					}
				}
				// Slots that are split or merged after Open take dirty rows along.
				if resident == 2*rows && (st.DirtyRows > dirty || st.DirtyRows < dirty*3/4 || st.RestoredRows < rows/2) {
					t.Errorf("%d rows restored, %d of them dirty, want half of %d, and %d", st.RestoredRows, st.DirtyRows, rows, dirty)
				}
				r.check(r.values)
				r.close()
			}
		})
	}
}

// TestSSDRestartSmaller opens a snapshot of dirty rows with a cache that is several times smaller.
// The rows that do not fit are written to buckets, the least used first. For reading only, the
// budget must hold an index of the dirty rows.
func TestSSDRestartSmaller(t *testing.T) {
	const rows = 20_000
	r := newRestarted(t, 1, 2*rows)
	r.open()
	for from := 0; from < rows; from += 1000 {
		r.train(tabletest.KeysFrom(from, 1000))
	}
	for range 3 {
		r.train(tabletest.KeysFrom(7000, 1000))
	}
	r.snapshot()
	r.close()
	r.opts.MemoryBytes = r.budget(1500)
	r.open()
	st := r.table.Stats()
	if st.RestoredRows != rows || st.CacheRows > rows/4 || st.FlushedRows < rows/2 {
		t.Errorf("%d rows restored, %d in memory, %d written to buckets", st.RestoredRows, st.CacheRows, st.FlushedRows)
	}
	r.pull(tabletest.KeysFrom(7000, 1000)).Release()
	if hits := r.table.Stats().Hits; hits < 950 {
		t.Errorf("%d of the 1000 rows used most are in memory", hits)
	}
	r.check(r.values)
	r.train(r.someKeys(500, rows))
	r.snapshot()
	r.close()
	r.open()
	r.check(r.values)
	r.close()

	r.opts.MemoryBytes = r.budget(2 * rows)
	r.open()
	for from := 0; from < rows; from += 1000 {
		r.train(tabletest.KeysFrom(from, 1000))
	}
	r.snapshot()
	r.close()
	r.opts.MemoryBytes, r.opts.ReadOnly = r.budget(1500), true
	if _, err := r.tryOpen(); !errors.Is(err, sparsetable.ErrBudget) {
		t.Errorf("opened for reading only with too small a budget: %v", err)
	}
	r.opts.MemoryBytes = r.budget(rows + 1000)
	r.open()
	r.check(r.values)
	r.close()
}

// TestSSDRestartInOrder has more clean rows than a snapshot may save. The most used ones must be
// those that are restored.
func TestSSDRestartInOrder(t *testing.T) {
	const rows = 20_000
	r := newRestarted(t, 0, 2*rows)
	entry := int64(16 + stressLayout.Bytes())
	r.opts.SSD.HotBytes = 3000 * entry
	r.open()
	r.grow(rows)
	r.flush()
	r.snapshot()
	r.close()
	r.open()
	ssd.WaitRestored(r.table)
	// Slots that the background writer has moved by then are passed over.
	restored := r.table.Stats().RestoredRows
	if st := r.table.Stats(); restored > 3000 || restored < 2500 || st.DirtyRows != 0 {
		t.Errorf("%d rows restored, %d dirty, want 3000 or a little less, and none", restored, st.DirtyRows)
	}
	r.pull(tabletest.KeysFrom(0, rows/4)).Release() // the 5000 used most
	if hits := r.table.Stats().Hits; hits != restored {
		t.Errorf("%d of the %d rows restored are among those used most, want all", hits, restored)
	}
	r.check(r.values)
	r.close()

	r.opts.SSD.HotBytes = -1
	r.open()
	ssd.WaitRestored(r.table)
	if n := r.table.Stats().RestoredRows; n != 0 {
		t.Errorf("%d rows restored, want none", n)
	}
	r.snapshot()
	r.close()
	for _, name := range must(r.dev.List())(t) {
		if isDelta(name) && len(r.dev.Bytes(name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestSSDRestoreRaces delays the restore of clean rows, changes rows and evicts them, and then lets
// the restore continue while more rows are changed and evicted. A restored row must never be older
// than what was written. In half of the tables the last file number was already used, so new files
// have smaller numbers than the existing ones.
func TestSSDRestoreRaces(t *testing.T) {
	const rows = 20_000
	restored := int64(0)
	for seed := range uint64(8) {
		around := seed >= 4
		r := newRestarted(t, seed, rows)
		nextFile := func(number uint32) {
			t.Helper()
			if err := ssd.SetNextFile(r.opts.SSD.Dirs[0], r.fs, number); err != nil {
				t.Fatal(err)
			}
		}
		r.open()
		if around {
			r.snapshot()
			r.close()
			nextFile(1 << 23)
			r.open()
		}
		r.grow(rows)
		r.flush()
		if seed%2 == 0 {
			r.train(r.someKeys(2000, rows))
		}
		r.snapshot()
		r.close()
		if around {
			nextFile(1 << 24)
		}

		held, arrived := make(chan struct{}), make(chan struct{}, 1)
		armed := false
		r.dev.read = func(int64) error {
			if armed {
				select {
				case arrived <- struct{}{}:
				default:
				}
				<-held
			}
			return nil
		}
		// Dirty rows come with Open.
		armed = seed%2 != 0
		r.open()
		if armed {
			<-arrived
		}
		r.train(r.someKeys(3000, rows))
		if seed%3 == 0 {
			r.flush()
		}
		if err := ssd.EvictRows(r.table, 100_000); err != nil {
			t.Fatal(err)
		}
		r.train(tabletest.KeysFrom(500, 1000)) // and these stay
		p, err := r.table.Snapshot(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		saved := map[uint64]float32{}
		maps.Copy(saved, r.values)
		r.wait(p)
		close(held)
		if around && !slices.ContainsFunc(must(r.dev.List())(t), func(name string) bool { return strings.Contains(name, "-000002-") }) {
			t.Error("the numbers of files did not begin again")
		}
		for range 10 {
			r.train(r.someKeys(1000, rows))
			if err := ssd.EvictRows(r.table, r.rng.IntN(2000)); err != nil {
				t.Fatal(err)
			}
		}
		ssd.WaitRestored(r.table)
		st := r.table.Stats()
		t.Logf("seed %d: %d rows restored", seed, st.RestoredRows)
		restored += st.RestoredRows
		r.check(r.values)
		r.train(r.someKeys(5000, rows))
		r.close()
		armed = false
		r.open() // what was saved during the restore
		ssd.WaitRestored(r.table)
		r.check(saved)
		r.close()
	}
	if restored == 0 {
		t.Error("nothing was restored")
	}
}

// TestSSDCloseDuringRestore closes the table while rows are being restored.
func TestSSDCloseDuringRestore(t *testing.T) {
	const rows = 10_000
	r := newRestarted(t, 1, 2*rows)
	r.open()
	r.grow(rows)
	r.flush()
	r.snapshot()
	r.close()
	for _, readOnly := range []bool{false, true} {
		held, arrived := make(chan struct{}), make(chan struct{}, 8)
		r.dev.read = func(int64) error {
			arrived <- struct{}{}
			<-held
			return nil
		}
		r.opts.ReadOnly = readOnly
		r.open()
		<-arrived
		ws, err := r.table.Pull(t.Context(), tabletest.KeysFrom(0, 10), sparsetable.PullLookup)
		if err != nil {
			t.Fatal(err)
		}
		ws.Release()
		closed := make(chan error)
		go func() { closed <- r.table.Close() }()
		for { // until Close has begun
			if _, err := r.table.Snapshots(); errors.Is(err, sparsetable.ErrClosed) {
				break
			}
		}
		close(held)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if n := r.dev.OpenFiles(); n != 0 {
			t.Fatalf("%d files are still open", n)
		}
	}
}

// TestSSDRestoreCorruption damages blocks of the delta file. A damaged block of dirty rows is an
// error of Open; one of clean rows is a warning, and no row is lost.
func TestSSDRestoreCorruption(t *testing.T) {
	const rows = 20_000
	r := newRestarted(t, 2, 2*rows)
	r.open()
	r.grow(rows)
	r.snapshot()
	r.close()
	name := ""
	for _, n := range must(r.dev.List())(t) {
		if isDelta(n) {
			name = n
		}
	}
	good := r.dev.Bytes(name)
	damaged := func(at int) {
		b := append([]byte(nil), good...)
		b[at] ^= 4
		r.dev.SetBytes(name, b)
	}
	var corrupt *sparsetable.CorruptionError
	damaged(5000)
	if _, err := r.tryOpen(); !errors.As(err, &corrupt) || !strings.HasSuffix(corrupt.File, name) {
		t.Errorf("a damaged dirty block: %v", err)
	}
	damaged(len(good) - 5000)
	var log bytes.Buffer
	r.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.open()
	ssd.WaitRestored(r.table)
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, name+" is damaged at offset") {
		t.Errorf("a damaged clean block: the log says %q", text)
	}
	r.pull(tabletest.KeysFrom(0, 10)).Release()
	r.check(r.values)
	r.train(r.someKeys(1000, rows))
	r.snapshot()
	r.close()
	r.open()
	r.check(r.values)
	r.close()
}

// TestSSDSnapshotStall checks that Snapshot returns while no write of its file completes. Rows that
// are trained from then on must not get into the snapshot.
func TestSSDSnapshotStall(t *testing.T) {
	const rows = 20_000
	r := newRestarted(t, 0, 2*rows)
	r.opts.MemoryBytes += 64 << 20
	r.open()
	r.grow(rows)
	held := make(chan struct{})
	r.dev.write = func(int64) error { <-held; return nil }
	keys := r.someKeys(rows/2, rows)
	ws := r.pull(keys)
	r.update(ws, keys)
	p, err := r.table.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]float32{}
	maps.Copy(want, r.values)
	r.update(ws, keys)
	ws.Release()
	close(held)
	r.train(tabletest.KeysFrom(rows, 1000))
	for range 20 {
		r.train(r.someKeys(3000, rows))
	}
	if info, err := p.Wait(); err != nil || info.Rows != int64(len(want)) {
		t.Fatalf("%d rows, want %d: %v", info.Rows, len(want), err)
	}
	r.close()
	r.open()
	r.check(want)
	r.close()
}

// TestSSDSnapshotCleanRows changes rows that were clean when a snapshot was fixed, and has them
// written, so that they are clean again while the snapshot is still saving clean rows. The snapshot
// must not save their new values.
func TestSSDSnapshotCleanRows(t *testing.T) {
	const rows = 20_000
	r := newRestarted(t, 1, 2*rows)
	r.open()
	r.grow(rows)
	r.flush()
	held, arrived := make(chan struct{}), make(chan struct{}, 100)
	r.dev.write = func(int64) error {
		arrived <- struct{}{}
		<-held
		return nil
	}
	p, err := r.table.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]float32{}
	maps.Copy(want, r.values)
	<-arrived
	for from := 0; from < rows; from += 1000 {
		r.train(tabletest.KeysFrom(from, 1000))
	}
	// Those of the same slots are written, too, and stay.
	if err := ssd.EvictRows(r.table, rows/5); err != nil {
		t.Fatal(err)
	}
	if st := r.table.Stats(); st.CacheRows-st.DirtyRows < rows/4 {
		t.Fatalf("%d rows in memory, %d dirty: this tests nothing", st.CacheRows, st.DirtyRows)
	}
	close(held)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	r.close()
	r.open()
	ssd.WaitRestored(r.table)
	if n := r.table.Stats().RestoredRows; n < 1000 || n > rows/2 {
		t.Errorf("%d rows restored", n)
	}
	r.check(want)
	r.close()
}

// TestSSDSnapshotAbandoned makes snapshots fail at every write of their file, or cancels them, with
// training in between. The snapshot that follows each of them must have all rows.
func TestSSDSnapshotAbandoned(t *testing.T) {
	const rows = 12_000
	r := newRestarted(t, 1, rows/2)
	r.open()
	r.grow(rows)
	injected := errors.New("injected")
	for n := 0; ; n++ {
		if n == 100 {
			t.Fatal("a snapshot makes more than 100 writes")
		}
		writes, failed := 0, false
		r.dev.write = func(int64) error {
			if writes++; writes > n {
				failed = true
				return injected
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		keys := r.someKeys(500, rows)
		ws := r.pull(keys)
		r.update(ws, keys)
		p, err := r.table.Snapshot(ctx, nil)
		if err == nil {
			if n%3 == 0 {
				cancel()
			}
			r.update(ws, keys)
			r.train(r.someKeys(500, rows))
			_, err = p.Wait()
		}
		ws.Release()
		canceled := ctx.Err() != nil
		cancel()
		if err != nil && !errors.Is(err, injected) && !errors.Is(err, context.Canceled) {
			t.Fatalf("write %d: %v", n, err)
		}
		if failed && err == nil {
			t.Fatalf("write %d failed, the snapshot did not", n)
		}
		r.dev.write = nil
		r.train(r.someKeys(500, rows))
		r.snapshot()
		r.train(r.someKeys(500, rows))
		if n%4 == 0 || !failed {
			r.snapshot()
			r.close()
			r.open()
			r.check(r.values)
		}
		if !failed && !canceled {
			break
		}
	}
	r.close()
}
