package blockio

import (
	"sync"
	"sync/atomic"

	"aibox/internal/panics"
)

// preadEngine reads by goroutines that call pread. It is for kernels and containers that
// refuse io_uring. Each goroutine that is blocked in pread needs a thread.
type preadEngine struct {
	dev     *osDevice
	workers sync.WaitGroup
	reading atomic.Int32 // workers in pread

	mu struct {
		sync.Mutex
		queue   readList
		closing bool
	}
	more sync.Cond // on mu: the queue is not empty, or closing
}

// newPreadEngine starts depth goroutines, which live until close.
func newPreadEngine(d *osDevice, depth int) *preadEngine {
	e := &preadEngine{dev: d}
	e.more.L = &e.mu
	for range depth {
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
	return nil
}
