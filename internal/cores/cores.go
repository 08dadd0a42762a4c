// Package cores determines how many goroutines compute in parallel.
//
// This is GOMAXPROCS, unless goroutines often sleep in system calls, as those do that read and
// write the files of a table past the page cache. Such a goroutine keeps its P (the runtime's
// processor) until the runtime's monitor retakes it. The monitor runs every 20 microseconds at
// best, and every 10 milliseconds if it has rarely found anything, so with few cores one of them is
// idle much of the time although other goroutines have work for it. While there may be such
// goroutines, GOMAXPROCS is therefore one more than the number of cores, and code that divides work
// among cores asks Count. From then on the runtime no longer adapts GOMAXPROCS when the limit of a
// container changes.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var (
	mu       sync.Mutex
	sleepers int          // callers of Sleepers that have not called what it returned; under mu
	extra    atomic.Int32 // processors for them
)

// Count returns how many goroutines at a time should compute.
func Count() int { return runtime.GOMAXPROCS(0) - int(extra.Load()) }

// Sleepers gives the runtime one more processor, until the done of every call of Sleepers has been
// called. Each done must be called exactly once.
func Sleepers() (done func()) {
	mu.Lock()
	defer mu.Unlock()
	if sleepers++; sleepers == 1 {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
		extra.Store(1) // now, so that Count is never too low
	}
	return wake
}

func wake() {
	mu.Lock()
	defer mu.Unlock()
	if sleepers--; sleepers == 0 {
		extra.Store(0)
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 1)
	}
}
