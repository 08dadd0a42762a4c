package bucketfile

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"aibox/sparsetable/internal/blockio/blocktest"
)

var seeds = flag.Int("seeds", 60, "seeds of each model test")

func eachSeed(t *testing.T, test func(t *testing.T, seed uint64)) {
	n := *seeds
	if testing.Short() {
		n = min(n, 10)
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			before := runtime.NumGoroutine()
			test(t, seed)
			waitFor(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// TestModel runs random operations without faults and compares everything: contents, counters, and
// files on the devices, also after restarts without a crash.
func TestModel(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		m := newModel(t, seed, 1+int(seed%3), smallOptions(1+int(seed%5)))
		for range 3 {
			m.mustOpen()
			for range 150 {
				if err := m.step(); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.checkIndex(m.index); err != nil {
				t.Error(err)
			}
			for _, s := range m.snapshots {
				if err := m.checkIndex(s.index); err != nil {
					t.Errorf("snapshot %d: %v", s.state.Snapshot, err)
				}
			}
			m.checkSpace()
			if err := m.set.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.checkFiles()
			m.close()
		}
	})
}

// TestCrash lets the machine crash at a random device operation. After each crash, everything to
// which the last committed snapshots refer must be there.
func TestCrash(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		m := newModel(t, seed, 1+int(seed%3), smallOptions(1+int(seed%5)))
		for round := range 5 {
			m.mustOpen()
			for _, s := range m.snapshots {
				if err := m.checkIndex(s.index); err != nil {
					t.Fatalf("round %d, snapshot %d: %v", round, s.state.Snapshot, err)
				}
			}
			m.checkSpace()
			left := m.rng.IntN(400)
			stopped := errors.New("the machine is about to crash")
			decide := func(op blocktest.Op) blocktest.Fault {
				if left--; left > 0 {
					return blocktest.Fault{}
				}
				if op.Kind == blocktest.Write && left == 0 {
					return blocktest.Fault{Err: stopped, Partial: true, Bytes: op.Bytes / 2}
				}
				return blocktest.Fault{Err: stopped}
			}
			m.mem[m.rng.IntN(len(m.mem))].Inject(decide)
			var err error
			for i := 0; i < 400 && err == nil; i++ {
				err = m.step()
			}
			if err != nil && !errors.Is(err, stopped) {
				t.Fatal(err)
			}
			m.crash()
		}
		m.mustOpen()
		if err := m.checkIndex(m.index); err != nil {
			t.Error(err)
		}
		m.close()
	})
}

// TestFailNth makes the n-th device operation fail, for n = 0, 1, and so on until a run has fewer
// operations. Every failure must be returned by some call, or leave no trace. Nothing committed may
// be lost as long as the machine does not crash, and a second attempt must succeed unless a sync
// failed.
func TestFailNth(t *testing.T) {
	kinds := [][]blocktest.Kind{
		{blocktest.Create}, {blocktest.Write}, {blocktest.Sync}, {blocktest.SyncDir}, {blocktest.Remove},
		{blocktest.Free}, {blocktest.Open}, {blocktest.Size}, {blocktest.List}, {blocktest.Read},
	}
	for _, kind := range kinds {
		t.Run(kind[0].String(), func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 7 // there are hundreds of reads
			}
			for n := 0; ; n += step {
				if !failNth(t, n, kind) {
					if n == 0 {
						t.Error("the run has no such operation")
					}
					return
				}
			}
		})
	}
}

func failNth(t *testing.T, n int, kinds []blocktest.Kind) (hit bool) {
	opts := smallOptions(3)
	opts.FileBytes = int64(opts.BufferBytes) // so that files come and go
	m := newModel(t, 5, 2, opts)
	m.mustOpen()
	decide, was := blocktest.FailNth(n, 1, syscall.EIO, kinds...)
	for _, d := range m.mem {
		d.Inject(decide)
	}
	told := error(nil)
	for round := range 2 {
		for range 80 {
			if err := m.step(); err != nil {
				if !errors.Is(err, syscall.EIO) {
					t.Fatalf("n=%d: %v", n, err)
				}
				told = err
			}
		}
		if err := m.checkIndex(m.index); err != nil {
			if told = err; !errors.Is(err, syscall.EIO) {
				t.Fatalf("n=%d: %v", n, err)
			}
		}
		if round == 1 {
			break
		}
		if err := m.snapshot(); err != nil {
			told = err
		}
		m.close()
		if err := m.open(); err != nil {
			if told = err; !errors.Is(err, syscall.EIO) {
				t.Fatalf("n=%d: open: %v", n, err)
			}
			m.mustOpen()
		}
	}
	synced := kinds[0] == blocktest.Sync || kinds[0] == blocktest.SyncDir
	err := m.snapshot()
	switch {
	case err == nil:
	case !errors.Is(err, syscall.EIO):
		t.Fatalf("n=%d: %v", n, err)
	default:
		told = err
		if err := m.snapshot(); synced == (err == nil) {
			t.Fatalf("n=%d: flush after a failed one: %v", n, err)
		}
	}
	// Writes are tried again, and so are the parts of reads that took in several buckets.
	silent := kinds[0] == blocktest.Remove || kinds[0] == blocktest.Write || kinds[0] == blocktest.Create || kinds[0] == blocktest.Read
	if was.Load() && told == nil && !silent {
		t.Fatalf("n=%d: the failure was told by nothing", n)
	}
	for _, s := range m.snapshots {
		if err := m.checkIndex(s.index); err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("n=%d: %v", n, err)
		}
	}
	m.checkSpace()
	m.crash()
	m.mustOpen()
	if err := m.checkIndex(m.index); err != nil {
		t.Fatalf("n=%d: after the crash: %v", n, err)
	}
	m.close()
	return was.Load()
}
