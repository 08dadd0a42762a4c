package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadFromBuffer reads buckets that are not written to the device yet.
func TestReadFromBuffer(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	for slot := range uint32(10) {
		must(t, m.append(slot, 5, false))
	}
	must(t, m.checkIndex(m.index))
	if s := m.mem[0].Stats(); s.Reads != 0 || s.Writes != 0 {
		t.Errorf("the device saw %+v", s)
	}
	must(t, m.set.Flush(t.Context()))
	must(t, m.checkIndex(m.index))
	if s := m.mem[0].Stats(); s.Reads == 0 || s.Writes != 1 || s.WriteBytes%writeAlign != 0 {
		t.Errorf("after Flush the device saw %+v", s)
	}
	m.close()
}

// TestMerge checks that neighboring buckets are read with one read, and others are not.
func TestMerge(t *testing.T) {
	for _, gap := range []int64{-1, 1, 2048} {
		opts := smallOptions(3)
		opts.MergeBytes = gap
		m := newModel(t, 1, 1, opts)
		m.mustOpen()
		var all []Location
		for slot := range uint32(12) {
			a, err := m.set.Begin(slot, 20, false) // one unit each
			must(t, err)
			for i := range 20 {
				a.Put(keyOf(slot, i), make([]float32, 3))
			}
			loc, err := a.Commit()
			must(t, err)
			all = append(all, loc)
		}
		must(t, m.set.Flush(t.Context()))
		q := m.set.NewQueue()
		var reqs []*Request
		for _, slot := range []uint32{9, 0, 1, 4, 1} { // gaps of 2 and 4 units
			reqs = append(reqs, &Request{Slot: slot, Location: all[slot]})
		}
		q.Submit(reqs)
		done := q.Wait(nil, len(reqs))
		for _, r := range done {
			must(t, r.Err)
			if r.Bucket.Slot != r.Slot {
				t.Errorf("gap %d: bucket of slot %d, want %d", gap, r.Bucket.Slot, r.Slot)
			}
		}
		q.Finish(done)
		want := map[int64]uint64{-1: 5, 1: 3, 2048: 1}[gap]
		if reads, _ := q.DeviceReads(); reads != want || m.mem[0].Stats().Reads != want {
			t.Errorf("gap %d: %d device reads, want %d", gap, reads, want)
		}
		m.close()
	}
}

// TestWaitLeavesTheDeviceBusy waits for some of several merged reads. As soon as one read has
// completed enough requests, Wait returns them, and the other reads are still in flight.
func TestWaitLeavesTheDeviceBusy(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	var reqs []*Request
	for slot := range uint32(24) {
		a, err := m.set.Begin(slot, 20, false) // one unit each
		must(t, err)
		for i := range 20 {
			a.Put(keyOf(slot, i), make([]float32, 3))
		}
		loc, err := a.Commit()
		must(t, err)
		reqs = append(reqs, &Request{Slot: slot, Location: loc})
	}
	must(t, m.set.Flush(t.Context()))
	q := m.set.NewQueue()
	q.MergeWithin(0, 6*int64(m.set.Unit())) // six requests in each of four reads
	release := make(chan struct{})
	reads := 0
	m.mem[0].Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Read {
			if reads++; reads == 2 {
				<-release
			}
		}
		return blocktest.Fault{}
	})
	late := time.AfterFunc(2*time.Minute, func() { close(release) })
	q.Submit(reqs)
	done := q.Wait(nil, 4)
	if len(done) != 6 {
		t.Errorf("Wait returns %d requests, want the 6 of one read", len(done))
	}
	if late.Stop() {
		close(release)
	}
	done = append(done, q.Wait(nil, len(reqs))...)
	for _, r := range done {
		must(t, r.Err)
	}
	if n, _ := q.DeviceReads(); n != 4 || len(done) != len(reqs) {
		t.Errorf("%d device reads, %d requests", n, len(done))
	}
	q.Finish(done)
	m.close()
}

// TestPoolAtLimit reads many buckets while other users hold a part of the pool or all of it. Reads
// must wait for each other, and none may fail. At most one read may exceed the limit.
func TestPoolAtLimit(t *testing.T) {
	const limit = 64 << 10
	for _, taken := range []int{0, limit / 2, limit} {
		opts := smallOptions(3)
		opts.MergeBytes = 512
		opts.Pool = blockio.NewPool(512, limit)
		m := newModel(t, 1, 2, opts)
		m.mustOpen()
		for slot := range uint32(300) {
			must(t, m.append(slot, 1+int(slot%100), false))
		}
		must(t, m.set.Flush(t.Context()))
		var held [][]byte
		for range taken / 1024 {
			b, err := opts.Pool.Get(1024)
			must(t, err)
			held = append(held, b)
		}
		q := m.set.NewQueue()
		var reqs, done []*Request
		for slot, c := range m.index {
			reqs = append(reqs, &Request{Slot: slot, Location: c.loc})
		}
		q.Submit(reqs[:200])
		for q.Pending() > 0 {
			from := len(done)
			done = q.Wait(done, 50)
			for _, r := range done[from:] {
				must(t, r.Err)
				if r.Bucket.Slot != r.Slot || r.Bucket.Len() != m.index[r.Slot].rows {
					t.Errorf("bucket of slot %d with %d rows, want %d with %d", r.Bucket.Slot, r.Bucket.Len(), r.Slot, m.index[r.Slot].rows)
				}
			}
			if got := opts.Pool.Bytes(); got > limit+maxMergedBytes {
				t.Errorf("%d bytes mapped, limit %d", got, limit)
			}
			q.Finish(done[from:])
			if len(reqs) > 200 {
				q.Submit(reqs[200:])
				reqs = reqs[:200]
			}
		}
		if len(done) != len(m.index) {
			t.Errorf("%d buckets", len(done))
		}
		for _, b := range held {
			opts.Pool.Put(b)
		}
		if got := opts.Pool.InUse(); got != 0 {
			t.Errorf("%d bytes in use at the end", got)
		}
		opts.Pool.Close()
		m.close()
	}
}

// TestOpen checks which files Open deletes and what it refuses.
func TestOpen(t *testing.T) {
	m := newModel(t, 1, 2, smallOptions(3))
	m.mustOpen()
	for slot := range uint32(20) {
		must(t, m.append(slot, 20, false))
	}
	must(t, m.snapshot())
	state := m.snapshots[0].state
	m.close()

	first := state.Files[0]
	unreferenced := []string{
		fileName(testTable, 500, 1), fileName(testTable, 501, 0), // of numbers that no snapshot has
		fileName(testTable, first.File, first.Incarnation+1), fileName(testTable, first.File, 0),
	}
	foreign := []string{fileName(testTable+1, 500, 1), fileName(testTable+1, 500, 0), "notes.txt", "000001.sst"}
	for _, name := range slices.Concat(foreign, unreferenced) {
		m.mem[0].SetBytes(name, []byte("x"))
	}
	name := fileName(testTable, first.File, first.Incarnation)
	dev := m.mem[0]
	good := dev.Bytes(name)
	if good == nil {
		dev = m.mem[1]
		good = dev.Bytes(name)
	}
	refuse := func(what string, want error) {
		t.Helper()
		if err := m.open(); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		for _, name := range unreferenced {
			if m.mem[0].Bytes(name) == nil {
				t.Errorf("%s: Open failed, and deleted %s", what, name)
			}
		}
		if n := m.mem[0].OpenFiles() + m.mem[1].OpenFiles(); n != 0 {
			t.Errorf("%s: Open failed, and left %d files open", what, n)
		}
	}
	dev.SetBytes(name, good[:len(good)-4096])
	refuse("truncated file", ErrCorrupt)
	bad := slices.Clone(good)
	bad[17] ^= 1
	dev.SetBytes(name, bad)
	refuse("changed header", ErrCorrupt)
	must(t, dev.Remove(name))
	refuse("missing file", ErrUnknownFile)
	dev.SetBytes(name, good)
	m.opts.RowWords = 4
	refuse("other rows", ErrCorrupt)
	m.opts.RowWords = 3

	m.mem[0], m.mem[1] = m.mem[1], m.mem[0] // directories may change places
	m.mustOpen()
	must(t, m.checkIndex(m.index))
	for _, name := range unreferenced {
		if m.mem[1].Bytes(name) != nil {
			t.Errorf("Open left %s, to which nothing refers", name)
		}
	}
	for _, name := range foreign {
		if m.mem[1].Bytes(name) == nil {
			t.Errorf("Open deleted %s", name)
		}
	}
	m.close()
}

func TestMisuse(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	for m.index[1].loc == 0 {
		must(t, m.append(1, 5, false))
	}
	if _, err := m.set.Begin(1, 10000, false); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a bucket of 200 kB: %v", err)
	}
	a, err := m.set.Begin(2, 4, false)
	must(t, err)
	if loc, err := a.Commit(); loc != 0 || err != nil {
		t.Errorf("a bucket without rows is at %v, %v", loc, err)
	}
	if _, err := a.Commit(); !errors.Is(err, ErrReleased) {
		t.Errorf("second Commit: %v", err)
	}
	loc := m.index[1].loc
	must(t, m.set.Release(loc))
	if err := m.set.Release(loc); err == nil {
		t.Error("a location was released twice")
	}
	must(t, m.set.Release(0))
	if err := m.set.EndHold(5); err == nil {
		t.Error("EndHold accepts an unknown snapshot")
	}
	_, err = m.set.Hold(5)
	must(t, err)
	if _, err := m.set.Hold(5); err == nil {
		t.Error("a snapshot holds files twice")
	}
	m.close()
	if _, err := m.set.Begin(1, 1, false); !errors.Is(err, ErrClosed) {
		t.Errorf("Begin after Close: %v", err)
	}
	if err := m.set.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	if _, err := Open(t.Context(), State{}, nil, Options{FileBytes: 1, BufferBytes: 100, UnitBytes: 700}); err == nil {
		t.Error("Open took nonsense")
	}
}

// TestBackPressure blocks the writer with an open Appender. Begin must wait once all buffers are
// full, Flush must wait until its context ends, and both must continue when the Appender is done.
func TestBackPressure(t *testing.T) {
	m := newModel(t, 1, 1, smallOptions(3))
	m.mustOpen()
	a, err := m.set.Begin(1000, 20, false)
	must(t, err)
	appended := make(chan error)
	go func() {
		for slot := range uint32(300) {
			if err := m.append(slot, 20, false); err != nil {
				appended <- err
				return
			}
		}
		appended <- nil
	}()
	waitFor(t, "all buffers are full", func() bool { return m.set.BufferedBytes() == 3*16<<10 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := m.set.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush past an open Appender: %v", err)
	}
	select {
	case err := <-appended:
		t.Fatalf("300 buckets went into three buffers: %v", err)
	default:
	}
	a.Abort()
	must(t, <-appended)
	must(t, m.checkIndex(m.index))
	must(t, m.set.Flush(t.Context()))
	m.close()
}

// TestConcurrent runs appends, reads, flushes, snapshots and scans at the same time.
func TestConcurrent(t *testing.T) {
	opts := smallOptions(3)
	m := newModel(t, 1, 2, opts)
	m.mustOpen()
	var all sync.WaitGroup
	errs := make(chan error, 10)
	run := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				errs <- err
			}
		})
	}
	for w := range uint32(3) { // each has slots of its own
		run(func() error {
			mine := newModel(t, uint64(w), 0, opts)
			mine.set = m.set
			for i := range 200 {
				if err := mine.append(100*w+uint32(i%20), 1+i%30, false); err != nil {
					return err
				}
				if i%50 == 49 {
					if err := mine.checkIndex(mine.index); err != nil {
						return err
					}
				}
			}
			return mine.checkIndex(mine.index)
		})
	}
	run(func() error {
		for id := range uint64(20) {
			if _, err := m.set.Hold(id); err != nil {
				return err
			}
			if err := m.set.Flush(t.Context()); err != nil {
				return err
			}
			if err := m.set.EndHold(id); err != nil {
				return err
			}
		}
		return nil
	})
	run(func() error {
		for range 30 {
			for _, c := range m.set.CompactionCandidates() {
				err := m.set.ScanFile(t.Context(), c.File, func(Location, *Bucket) error { return nil })
				if err != nil && !errors.Is(err, ErrUnknownFile) {
					return err
				}
			}
			m.set.Space()
		}
		return nil
	})
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	m.close()
}

// TestOperatingSystem runs the model on real directories.
func TestOperatingSystem(t *testing.T) {
	for _, engine := range []string{"", "pread"} {
		m := newModel(t, 3, 0, smallOptions(20))
		for i := range 2 {
			d, err := blockio.Open(t.Context(), fmt.Sprintf("%s/%d", t.TempDir(), i), blockio.Options{Engine: engine, Logger: quiet()})
			must(t, err)
			defer func() { must(t, d.Close()) }()
			m.opts.Devices = append(m.opts.Devices, d)
		}
		var current State
		for range 2 {
			var err error
			m.set, err = Open(t.Context(), current, nil, m.opts)
			must(t, err)
			must(t, m.checkIndex(m.index))
			for range 200 {
				must(t, m.step())
			}
			must(t, m.snapshot())
			must(t, m.checkIndex(m.index))
			must(t, m.set.Close())
			current = m.snapshots[len(m.snapshots)-1].state
			m.snapshots = nil
		}
		names, err := os.ReadDir(m.opts.Devices[0].Dir())
		must(t, err)
		if len(names) == 0 {
			t.Error("no files were written")
		}
	}
}

// TestSteadyStateDoesNotAllocate appends, reads and releases buckets without allocating memory.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	dev, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Logger: quiet()})
	must(t, err)
	defer func() { must(t, dev.Close()) }()
	opts := smallOptions(20)
	opts.Devices, opts.FileBytes, opts.BufferBytes = []blockio.Device{dev}, 1<<30, 64<<10
	set, err := Open(t.Context(), State{}, nil, opts)
	must(t, err)
	defer func() { must(t, set.Close()) }()
	q := set.NewQueue()
	row := make([]float32, 20)
	reqs := make([]*Request, 16)
	for i := range reqs {
		reqs[i] = &Request{}
	}
	done := make([]*Request, 0, 16)
	cycle := func() {
		for i, r := range reqs {
			a, err := set.Begin(uint32(i), 30, false)
			must(t, err)
			for k := range 30 {
				a.Put(uint64(k), row)
			}
			r.Slot = uint32(i)
			r.Location, err = a.Commit()
			must(t, err)
		}
		if set.BufferedBytes() == 0 {
			t.Fatal("nothing is buffered")
		}
		q.Submit(reqs)
		done = q.Wait(done[:0], len(reqs))
		for _, r := range done {
			must(t, r.Err)
			must(t, set.Release(r.Location))
		}
		q.Finish(done)
	}
	for range 20 {
		cycle()
	}
	if n := testing.AllocsPerRun(50, cycle); n > 2 { // the odd growth of a slice
		t.Errorf("%v allocations a cycle of %d buckets", n, len(reqs))
	}
}
