package kernel

import (
	"sync"
	"sync/atomic"

	"aibox/internal/cores"
	"aibox/internal/panics"
)

// threads is what SetThreads stored; 0 stands for GOMAXPROCS.
var threads atomic.Int32

// SetThreads sets how many goroutines a call may use, the caller among them.
// n <= 0 restores the default, GOMAXPROCS. Results never depend on it.
func SetThreads(n int) { threads.Store(int32(max(n, 0))) }

// Threads returns how many goroutines a call may use.
func Threads() int {
	if n := threads.Load(); n > 0 {
		return int(n)
	}
	return cores.Count()
}

// nextChunk returns how many of the remaining elements a thread takes at once: half of its share,
// in multiples of grain. Threads that start late or are interrupted thus leave more to the others,
// and the last chunks are so small that all threads end at about the same time.
func nextChunk(remaining, grain, threads int) int {
	share := (remaining + 2*threads - 1) / (2 * threads)
	return min((share+grain-1)/grain*grain, remaining)
}

// Parallel calls fn for disjoint ranges [lo, hi) that cover [0, n), on up to
// Threads() goroutines, and returns when all calls have. A range has at least
// grain elements, except the last; choose it so that a range is worth more
// than waking a goroutine, some 10 microseconds. Ranges start at multiples of
// grain. What fn computes must not depend on how [0, n) is cut.
//
// When fn panics, on whatever goroutine, Parallel panics on the caller's with a
// *panics.Error, after the last call of fn has returned.
func Parallel(n, grain int, fn func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if n <= grain || Threads() == 1 {
		fn(0, n)
		return
	}
	parallel(n, grain, ranger(fn))
}

// task is the work of one parallel call. Implementations are pointers to pooled structs, which
// produces no garbage.
type task interface {
	run(lo, hi int)
}

type ranger func(lo, hi int)

func (f ranger) run(lo, hi int) { f(lo, hi) }

// call is the state that the goroutines of one parallel call share.
type call struct {
	task    task
	n       int // elements
	grain   int
	threads int
	next    atomic.Int64
	wg      sync.WaitGroup
	panic   atomic.Pointer[panics.Error] // the first one
	work    func()                       // c.help, bound once so that starting it allocates nothing
}

var calls = sync.Pool{New: func() any {
	c := new(call)
	c.work = c.help
	return c
}}

// parallel runs t over [0, n) in chunks of a multiple of grain elements.
func parallel(n, grain int, t task) { parallelOn(Threads(), n, grain, t) }

// parallelOn is parallel on a given number of threads, fewer than Threads() if the work is too
// small for more.
func parallelOn(threads, n, grain int, t task) {
	helpers := min(threads, (n+grain-1)/grain) - 1
	if helpers <= 0 {
		if n > 0 {
			t.run(0, n)
		}
		return
	}
	c := calls.Get().(*call)
	c.task, c.n, c.grain, c.threads = t, n, grain, helpers+1
	c.next.Store(0)
	c.wg.Add(helpers)
	for range helpers {
		go c.work()
	}
	c.take()
	c.wg.Wait()
	c.task = nil
	if p := c.panic.Swap(nil); p != nil {
		panic(p)
	}
	calls.Put(c)
}

func (c *call) help() {
	defer c.wg.Done()
	c.take()
}

// take runs chunks until none is left, or one panics.
func (c *call) take() {
	defer func() {
		if v := recover(); v != nil {
			c.panic.CompareAndSwap(nil, panics.New("a parallel computation", v))
			c.next.Store(int64(c.n)) // no goroutine begins another chunk
		}
	}()
	for {
		lo := int(c.next.Load())
		if lo >= c.n {
			return
		}
		hi := lo + nextChunk(c.n-lo, c.grain, c.threads)
		if c.next.CompareAndSwap(int64(lo), int64(hi)) {
			c.task.run(lo, hi)
		}
	}
}
