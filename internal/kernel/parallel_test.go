package kernel

import (
	"sync/atomic"
	"testing"
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
