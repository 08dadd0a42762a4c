// Package cores says on how many processors a program computes.
//
// That is GOMAXPROCS, unless goroutines often sleep in system calls, as those do that read and
// write the files of a table past the page cache. Such a goroutine keeps its processor until the
// runtime's monitor takes it away. The monitor looks every 20 microseconds at best, and every 10
// milliseconds where it has seldom found anything, so that on few cores one of them is idle for
// much of the time, though other goroutines have work for it. As long as there may be such
// goroutines, GOMAXPROCS is therefore one more than the cores, and what divides work among cores
// asks Count. From then on the runtime does not adapt GOMAXPROCS any more when the limit of a
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

// Sleepers lets the runtime use a processor more, until done is called for each call of Sleepers.
// Each must be called once.
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
