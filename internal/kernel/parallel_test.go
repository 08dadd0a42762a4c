package kernel

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"aibox/internal/panics"
)

// Every element is given out once, ranges start at multiples of the grain, and
// no more goroutines than allowed work at once.
func TestParallelCovers(t *testing.T) {
	defer SetThreads(0)
	for _, threads := range []int{1, 2, 3, 7, 64} {
		SetThreads(threads)
		if Threads() != threads {
			t.Fatalf("Threads() = %d after SetThreads(%d)", Threads(), threads)
		}
		for _, n := range []int{0, 1, 2, 15, 16, 17, 100, 1001} {
			for _, grain := range []int{0, 1, 4, 16, 2000} {
				seen := make([]atomic.Int32, n)
				var working, most atomic.Int32
				Parallel(n, grain, func(lo, hi int) {
					now := working.Add(1)
					for {
						m := most.Load()
						if now <= m || most.CompareAndSwap(m, now) {
							break
						}
					}
					if grain > 0 && lo%grain != 0 {
						t.Errorf("a range starts at %d, grain %d", lo, grain)
					}
					if lo >= hi || hi-lo < grain && hi != n {
						t.Errorf("range [%d, %d) is below the grain %d", lo, hi, grain)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
					working.Add(-1)
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("element %d of %d was given out %d times", i, n, c)
					}
				}
				if m := most.Load(); int(m) > threads {
					t.Errorf("%d ranges at once, %d threads", m, threads)
				}
			}
		}
	}
}

func TestParallelNests(t *testing.T) {
	defer SetThreads(0)
	SetThreads(3)
	var sum atomic.Int64
	Parallel(10, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			Parallel(10, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
		}
	})
	if sum.Load() != 100 {
		t.Errorf("%d inner elements, want 100", sum.Load())
	}
}

func TestLevels(t *testing.T) {
	before := Level()
	if err := SetLevel("mmx"); err == nil {
		t.Error("SetLevel accepted a level that does not exist")
	}
	if Level() != before {
		t.Errorf("a wrong SetLevel changed the level to %s", Level())
	}
	if Levels()[0] != "portable" {
		t.Errorf("Levels() = %v", Levels())
	}
	t.Setenv(levelVariable, "avx3")
	if err := CheckEnvironment(); err == nil {
		t.Error("CheckEnvironment accepts avx3")
	}
	t.Setenv(levelVariable, "portable")
	if err := CheckEnvironment(); err != nil {
		t.Error(err)
	}
}

// TestParallelPanicsOnItsCaller: wherever a range panics, the caller sees it and
// can recover, and by then no range is at work any more.
func TestParallelPanicsOnItsCaller(t *testing.T) {
	defer SetThreads(0)
	for _, threads := range []int{1, 2, 8} {
		SetThreads(threads)
		for bad := range 40 {
			var working atomic.Int32
			err := panics.Do("the test", func() error {
				Parallel(40, 1, func(lo, hi int) {
					working.Add(1)
					defer working.Add(-1)
					runtime.Gosched()
					if lo <= bad && bad < hi {
						panic(bad)
					}
				})
				return nil
			})
			var p *panics.Error
			if !errors.As(err, &p) || p.Value != bad || !strings.Contains(string(p.Stack), "TestParallelPanicsOnItsCaller") {
				t.Fatalf("%d threads: %v", threads, err)
			}
			if n := working.Load(); n != 0 {
				t.Fatalf("%d threads: %d ranges are at work after the call", threads, n)
			}
		}
		n := atomic.Int32{}
		Parallel(100, 1, func(lo, hi int) { n.Add(int32(hi - lo)) })
		if n.Load() != 100 {
			t.Errorf("%d threads: %d elements after a panic, want 100", threads, n.Load())
		}
	}
}
