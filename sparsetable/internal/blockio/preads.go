package blockio

import (
	"runtime"
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
	"aibox/internal/process"
)

// preadEngine reads with goroutines that call pread. It is for kernels and containers that refuse
// io_uring. Each goroutine that blocks in pread needs a thread.
type preadEngine struct {
	dev     *osDevice
	threads int // goroutines, each with a thread
	workers sync.WaitGroup
	reading atomic.Int32 // workers in pread

	mu struct {
		sync.Mutex
		queue   readList
		closing bool
	}
	more sync.Cond // on mu: the queue is not empty, or closing
}

// newPreadEngine starts goroutines that live until close: as many as the queue depth, unless an
// engine may not have that many threads.
func newPreadEngine(d *osDevice, depth int) *preadEngine {
	e := &preadEngine{dev: d, threads: takeThreads(min(depth, maxPreadThreads))}
	e.more.L = &e.mu
	for range e.threads {
		e.workers.Go(e.work)
	}
	return e
}

func (e *preadEngine) name() string { return enginePread }

func (e *preadEngine) submit(reads []*Read) bool {
	e.mu.Lock()
	if e.mu.closing {
		e.mu.Unlock()
		return false
	}
	for _, r := range reads {
		e.mu.queue.push(r)
	}
	n := len(reads)
	e.mu.Unlock()
	for range n {
		e.more.Signal()
	}
	return true
}

// work reads until close has begun and the queue is empty.
func (e *preadEngine) work() {
	defer panics.Exit("reading from a device")
	var one [1]*Read
	for {
		e.mu.Lock()
		for e.mu.queue.n == 0 && !e.mu.closing {
			e.more.Wait()
		}
		r := e.mu.queue.pop()
		e.mu.Unlock()
		if r == nil {
			return
		}
		e.dev.inFlight(int(e.reading.Add(1)))
		r.done, r.Err = preadFull(r.File.(*osFile).fd, r.Buf, r.Offset, r.File.(*osFile).dev.unit)
		e.reading.Add(-1)
		e.dev.stats.engineCalls.Add(1)
		e.dev.finish(r)
		one[0] = r
		Deliver(one[:])
		one[0] = nil
	}
}

func (e *preadEngine) close() error {
	e.mu.Lock()
	e.mu.closing = true
	e.mu.Unlock()
	e.more.Broadcast()
	e.workers.Wait()
	reservedThreads.Add(-int32(e.threads))
	return nil
}

// maxPreadThreads bounds the threads of an engine: 128 threads reach the best rate
// that was measured on an NVMe device, and more only cost memory.
const maxPreadThreads = 128

// reservedThreads is the total number of threads that the open engines may have.
var reservedThreads atomic.Int32

// freeThreads returns how many more threads the process can have; tests replace it.
var freeThreads = process.FreeThreads

// takeThreads returns how many of the wanted threads an engine may have, at least one. Go's runtime
// ends the program if it cannot get a thread. So an engine takes a quarter of the free threads:
// then any number of engines leaves some, besides those that the rest of the program needs.
func takeThreads(want int) int {
	if free := freeThreads(); free >= 0 {
		rest := 16 + 2*runtime.GOMAXPROCS(0) // a job with io_uring had 27 on 2 cores
		want = min(want, max(1, (free-rest-int(reservedThreads.Load()))/4))
	}
	reservedThreads.Add(int32(want))
	return want
}
