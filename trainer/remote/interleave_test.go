package remote

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/testseed"
)

// steps lets a process do that many operations and then stops it.
type steps struct {
	mu      sync.Mutex
	cond    sync.Cond
	allowed int // -1: any number
	made    int
	ended   bool
	err     error // of the publication
}

func newSteps() *steps {
	s := &steps{}
	s.cond.L = &s.mu
	return s
}

// take waits until an operation may be done, and counts it when it is done.
func (s *steps) take(run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.allowed >= 0 && s.made >= s.allowed {
		s.cond.Wait()
	}
	run()
	s.made++
	s.cond.Broadcast()
}

// run lets the process do n operations in all, or any number if n is -1, and waits until it has
// done them or has ended. It reports whether the process has ended.
func (s *steps) run(n int) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = n
	s.cond.Broadcast()
	for !s.ended && (n < 0 || s.made < n) {
		s.cond.Wait()
	}
	return s.ended
}

// at is run without its result.
func (s *steps) at(n int) int {
	s.run(n)
	return n
}

// start starts a publication whose operations the steps control.
func (s *steps) start(t *testing.T, store *memStore, o Options, p Publication) {
	d := Open("mem", &faultyStore{memStore: store, steps: s}, o)
	s.begin(func() error {
		_, err := d.Publish(t.Context(), p)
		if err != nil && !errors.Is(err, errAgain) {
			t.Error(err)
		}
		return err
	})
}

// begin starts a function whose operations the steps control.
func (s *steps) begin(do func() error) {
	go func() {
		err := do()
		s.mu.Lock()
		s.ended, s.err = true, err
		s.cond.Broadcast()
		s.mu.Unlock()
	}()
}

// TestTwoPublishers lets two machines publish the next nights of one model at the same time, and
// delete old generations. One of them is stopped after any number of operations, and continues when
// the other one has done any number. At each instant all generations must be complete, and neither
// machine may report as damaged what the other one has deleted.
func TestTwoPublishers(t *testing.T) {
	before := newMemStore()
	for i := 1; i <= 3; i++ {
		if _, err := Open("mem", before, quiet).Publish(t.Context(), night("a", i).publication("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	rng, stride := testseed.Rand(t), 16
	if testseed.Fresh() { // in make stress
		stride = 1
	}
	for _, c := range []struct {
		owner     string
		abandoned time.Duration
	}{{"another", time.Hour}, {"another", 1}, {"host:a", time.Hour}} {
		var log bytes.Buffer
		o := quiet
		o.abandonedAfter, o.partBytes, o.Logger = c.abandoned, 1000, slog.New(slog.NewTextHandler(&log, nil))
		for first, ended := 0, false; !ended; first += 1 + rng.IntN(stride) {
			for second, done := 0, false; !done; second += 1 + rng.IntN(stride) {
				s := &memStore{files: maps.Clone(before.files)}
				committed := make(map[string]bool) // at any time, by identity
				s.after = func() {
					s.wholeLocked(t)
					for name, f := range s.files {
						if m, err := decode(f.data); err == nil && path.Dir(name) == generationsDir {
							committed[m.Identity] = true
						}
					}
				}
				a, b := night("a", 4).publication("a", 4), night("a", 5).publication("a", 5)
				a.Keep, b.Keep, b.Owner = 1, 1, c.owner
				one, other := newSteps(), newSteps()
				one.start(t, s, o, a)
				other.start(t, s, o, b)
				ended = one.run(first)
				done = other.run(second)
				one.run(-1)
				other.run(-1)
				if one.err == nil && !committed[a.Identity] || other.err == nil && !committed[b.Identity] {
					t.Error("a model is said to be published, and never was")
				}
				if _, err := Open("mem", s, quiet).Publish(t.Context(), night("a", 6).publication("a", 6)); err != nil {
					t.Fatal(err)
				}
				s.clean(t)
				if strings.Contains(log.String(), "damaged") {
					t.Errorf("the log is %s", &log)
				}
				log.Reset()
				if t.Failed() {
					t.Fatalf("the one is stopped after %d operations, until the other one has made %d", first, second)
				}
			}
		}
	}
}

// TestThreePublishers covers three processes: while one is about to delete objects that no
// generation refers to, a second one begins to publish a model that shares files with a generation,
// and a third one removes that generation. At each instant all generations must be complete.
func TestThreePublishers(t *testing.T) {
	before := newMemStore()
	for i := 1; i <= 2; i++ {
		if _, err := Open("mem", before, quiet).Publish(t.Context(), night("a", i).publication("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	for first, ended := 0, false; !ended; first++ {
		s := &memStore{files: maps.Clone(before.files)}
		s.after = func() { s.wholeLocked(t) }
		cleans, shares, removes := newSteps(), newSteps(), newSteps()
		cleans.start(t, s, quiet, night("b", 1).publication("b", 1))
		ended = cleans.run(first)
		had := len(s.names(objectsDir))
		shares.start(t, s, quiet, night("a", 3).publication("a", 3))
		for n := 1; len(s.names(objectsDir)) == had; n++ {
			shares.run(n)
		}
		other := night("c", 1).publication("a", 4)
		other.Keep, other.Owner = 1, "another"
		removes.start(t, s, quiet, other)
		removes.run(-1)
		cleans.run(-1)
		shares.run(-1)
		if t.Failed() {
			t.Fatalf("the one is stopped after %d operations", first)
		}
	}
}

// TestSharesWithWhoHasNotLooked covers three processes: while one deletes a generation and its
// objects, a second one has just announced that it will use the objects, and has not checked yet
// whether they stay. A third one, which shares files with both, must not rely on that. At each
// instant all generations must be complete.
func TestSharesWithWhoHasNotLooked(t *testing.T) {
	before := newMemStore()
	if _, err := Open("mem", before, quiet).Publish(t.Context(), night("a", 1).publication("a", 1)); err != nil {
		t.Fatal(err)
	}
	says := func(s *memStore) *steps {
		says := newSteps()
		says.start(t, s, quiet, night("a", 2).publication("b", 2))
		return says
	}
	alone := &memStore{files: maps.Clone(before.files)}
	one, said := says(alone), 0 // operations until it has said so
	for len(alone.names(pendingDir)) == 0 {
		said++
		one.run(said)
	}
	one.run(-1)
	for first, ended := 0, false; !ended; first++ {
		s := &memStore{files: maps.Clone(before.files)}
		s.after = func() { s.wholeLocked(t) }
		one, deletes, shares := says(s), newSteps(), newSteps()
		one.run(said - 1)
		other := night("c", 1).publication("a", 2)
		other.Keep = 1
		deletes.start(t, s, quiet, other)
		ended = deletes.run(first)
		one.run(said)
		shares.start(t, s, quiet, night("a", 3).publication("d", 3))
		shares.run(-1)
		deletes.run(-1)
		one.run(-1)
		if t.Failed() {
			t.Fatalf("who deletes is stopped after %d operations", first)
		}
	}
}
