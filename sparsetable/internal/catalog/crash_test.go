package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// script repeatedly opens a catalog and commits or drops a snapshot. Before each operation
// it calls pending with the model of the catalog after it, and after the operation it calls
// done with the same. It stops at the first error.
func script(fs vfs.FS, m *model, rng *rand.Rand, pending, done func(*model)) error {
	for range 2 {
		c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs})
		if err != nil {
			return err
		}
		err = session(c, m, rng, pending, done)
		if cerr := c.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func session(c *Catalog, m *model, rng *rand.Rand, pending, done func(*model)) error {
	if n := len(m.snapshots); n > 0 {
		if err := m.load(c, m.snapshots[n-1]); err != nil {
			return err
		}
	}
	for range 5 {
		m.train(rng)
		next := m.clone()
		next.snapshots = append(next.snapshots, modelSnapshot{}) // what comes, see equals
		pending(next)
		if err := m.commit(c, rng); err != nil {
			return err
		}
		done(m.clone())
		if len(m.snapshots) > 2 {
			i := rng.IntN(len(m.snapshots))
			next := m.clone()
			next.snapshots = append(next.snapshots[:i:i], next.snapshots[i+1:]...)
			pending(next)
			if err := m.drop(c, i); err != nil {
				return err
			}
			done(m.clone())
		}
	}
	return nil
}

// states has the two states that a catalog may have after a crash.
type states struct {
	sync.Mutex
	committed *model // of the last operation that returned
	pending   *model // if the one under way took effect
	live      [][]byte
}

func (s *states) setPending(m *model) {
	s.Lock()
	defer s.Unlock()
	s.pending, s.live = m, m.live
}

func (s *states) setDone(m *model) {
	s.Lock()
	defer s.Unlock()
	s.committed, s.pending = m, nil
}

// check opens what a crash left and compares it with the states.
func (s *states) check(fs vfs.FS) error {
	c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	errCommitted := s.committed.differs(c)
	var errPending error
	if errCommitted != nil && s.pending != nil {
		errPending = s.differsPending(c)
		if errPending == nil {
			errCommitted = nil
		}
	}
	if errCommitted == nil { // and it works
		m, rng := s.committed.reopened(), rand.New(rand.NewPCG(1, 1))
		if s.committed.differs(c) == nil {
			if n := len(m.snapshots); n > 0 {
				errCommitted = m.load(c, m.snapshots[n-1])
			} else {
				m.train(rng)
			}
			if errCommitted == nil {
				errCommitted = m.commit(c, rng)
			}
			if errCommitted == nil {
				errCommitted = m.differs(c)
			}
		}
	}
	return errors.Join(errCommitted, errPending, c.Close())
}

// differsPending compares the catalog with the state after the operation that was in progress.
func (s *states) differsPending(c *Catalog) error {
	m := s.pending.clone()
	n := len(m.snapshots)
	if n > 0 && m.snapshots[n-1].ID == 0 { // a commit: all but its record is known
		all := c.Snapshots()
		if len(all) != n {
			return fmt.Errorf("%d snapshots, want %d", len(all), n)
		}
		m.snapshots[n-1] = modelSnapshot{all[n-1], s.live}
	}
	return m.differs(c)
}

// TestCrash lets the machine crash before any operation of the file system, with none, some
// or all of what was not synced. The snapshots must be as they were before the commit or
// drop under way, or as they are after it.
func TestCrash(t *testing.T) {
	for seed := range crashSeeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { crashEverywhere(t, seed) })
	}
}

// crashSeeds is the number of runs of TestCrash; hundreds have passed.
const crashSeeds uint64 = 3

func crashEverywhere(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	crashes := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewCrashableMem()
	st := &states{committed: &model{}}
	clones, every := 0, 1
	if testing.Short() {
		every = 5
	}
	var op int
	var checking sync.Mutex // operations come from several goroutines
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind.ReadOrWrite() != errorfs.OpIsWrite || t.Failed() {
			return nil
		}
		checking.Lock()
		defer checking.Unlock()
		st.Lock()
		defer st.Unlock()
		if op++; op%every != 0 {
			return nil
		}
		percent := []int{0, 50, 100}[clones%3]
		clones++
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: crashes})
		if err := st.check(clone); err != nil {
			t.Errorf("crash at operation %d (%v %s), %d %% of the unsynced data kept: %v", op, o.Kind, o.Path, percent, err)
		}
		return nil
	}))
	if err := script(fs, (&model{}).reopened(), rng, st.setPending, st.setDone); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations, %d crashes", op, clones)
	if op < 100 {
		t.Errorf("only %d operations", op)
	}
}

// TestFailures lets any operation of the file system fail, once or from then on. The catalog
// must return an error or be as it should be, and a crash after that must leave the last
// committed snapshots.
func TestFailures(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, lasting := range []bool{false, true} {
		failed := 0
		for n := 0; ; n += step {
			hit, err := failAt(t, seed, n, lasting)
			if t.Failed() {
				return
			}
			if err != nil {
				failed++
			}
			if !hit {
				t.Logf("lasting %v: %d operations, %d made the script fail", lasting, n, failed)
				break
			}
		}
		if failed < 10 {
			t.Errorf("only %d runs failed", failed)
		}
	}
}

var errInjected = errors.New("injected")

// failAt runs the script and makes operation n fail.
func failAt(t *testing.T, seed uint64, n int, lasting bool) (hit bool, err error) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	mem := vfs.NewCrashableMem()
	st := &states{committed: &model{}}
	var mu sync.Mutex
	ops, injected := 0, false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		ops++
		if ops-1 == n || lasting && ops-1 > n {
			injected = true // the database may close files after the script has ended
			return errInjected
		}
		return nil
	}))
	done := make(chan error, 1)
	go func() { done <- script(fs, (&model{}).reopened(), rng, st.setPending, st.setDone) }()
	select {
	case err = <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("operation %d, lasting %v: hangs", n, lasting)
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil && !errors.Is(err, errInjected) && !errors.Is(err, ErrFailed) {
		t.Errorf("operation %d, lasting %v: %v", n, lasting, err)
	}
	percent := []int{0, 100}[n%2]
	clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	if err := st.check(clone); err != nil {
		t.Errorf("operation %d failed, lasting %v, then crashed: %v", n, lasting, err)
	}
	if errors.Is(err, ErrFailed) { // the disk works again, and nothing crashes
		if err := st.check(mem); err != nil {
			t.Errorf("operation %d failed, lasting %v, then the catalog is opened again: %v", n, lasting, err)
		}
	}
	return injected, err
}

// TestFullDisk checks that only the commit fails if the disk is full: when there is room
// again the next commit succeeds, and the failed one has left no file.
func TestFullDisk(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 0))
	mem := vfs.NewMem()
	var full atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if full.Load() && (o.Kind == errorfs.OpFileWrite || o.Kind == errorfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	}))
	c := open(t, fs)
	m := (&model{}).reopened()
	for range 5 {
		m.train(rng)
		if err := m.commit(c, rng); err != nil {
			t.Fatal(err)
		}
		m.train(rng)
		w, err := c.Begin() // a file that exists before the disk is full
		if err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		for p, data := range m.live {
			if err := w.PutPage(uint32(p), data); err != nil {
				t.Fatal(err) // still in the buffers
			}
		}
		if err := w.Commit(Snapshot{Slots: uint32(len(m.live) * testFormat.PageSlots)}); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrFailed) {
			t.Fatalf("commit on a full disk: %v", err)
		}
		if _, err := c.Begin(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("begin on a full disk: %v", err)
		}
		if err := c.Drop(m.snapshots[0].ID); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("drop on a full disk: %v", err)
		}
		full.Store(false)
		if err := m.commit(c, rng); err != nil {
			t.Fatal(err)
		}
		if len(m.snapshots) > 3 {
			if err := m.drop(c, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.differs(c); err != nil {
		t.Fatal(err)
	}
	checkGarbage(t, c, m, rng)
	shut(t, c)
	names, err := mem.List("cat")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasSuffix(n, tmpSuffix) {
			t.Errorf("%s is left", n)
		}
	}
}
