package blockio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/panics"
)

// uringEngine reads through a ring that one goroutine drives, on its own thread. Only this
// goroutine submits and collects, so the ring needs no lock, and the kernel may do its part of a
// completion when that thread asks for it.
//
// The goroutine sleeps in io_uring_enter while reads are in flight. A goroutine that submits reads
// meanwhile wakes it by writing to an event counter (eventfd), a read of which is always pending in
// the ring. It does so only if the kernel has room for more reads.
type uringEngine struct {
	dev   *osDevice
	depth int
	event int // eventfd
	ended sync.WaitGroup

	mu struct {
		sync.Mutex
		queue   readList
		room    bool // the driver sleeps in the kernel, which has room for more reads
		closing bool
	}
	work sync.Cond // on mu: the queue is not empty, or closing

	// Used only by the driver:

	ring      *ring
	slots     []*Read  // in flight, by user data
	free      []uint32 // unused slots
	delivered []*Read
	again     readList // short reads to be continued
	eventBuf  []byte   // 8 bytes of mapped memory
	armed     bool     // a read of the event counter is in flight
}

// eventData marks the completion of a read of the event counter.
const eventData = ^uint64(0)

// makeRing makes the ring; tests replace it with a function that fails.
var makeRing = newRing

// newURingEngine starts the driver, or returns why the kernel does not allow it.
func newURingEngine(d *osDevice, depth int) (*uringEngine, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	e := &uringEngine{dev: d, depth: depth, event: event, slots: make([]*Read, depth), delivered: make([]*Read, 0, depth)}
	e.work.L = &e.mu
	if e.eventBuf, err = mapMemory(maxUnit); err != nil {
		_ = unix.Close(event)
		return nil, err
	}
	for i := range depth {
		e.free = append(e.free, uint32(depth-1-i))
	}
	started := make(chan error)
	e.ended.Go(func() {
		defer panics.Exit("reading through io_uring")
		e.drive(started)
	})
	if err := <-started; err != nil {
		e.ended.Wait()
		return nil, err
	}
	return e, nil
}

func (e *uringEngine) name() string { return engineURing }

func (e *uringEngine) submit(reads []*Read) bool {
	e.mu.Lock()
	if e.mu.closing {
		e.mu.Unlock()
		return false
	}
	for _, r := range reads {
		e.mu.queue.push(r)
	}
	e.wakeLocked()
	e.mu.Unlock()
	e.work.Signal()
	return true
}

// wakeLocked wakes the driver if it sleeps in the kernel and has room. The lock keeps the driver
// from ending meanwhile, which would close the event counter: the write could then reach another
// file with the same descriptor.
func (e *uringEngine) wakeLocked() {
	if e.mu.room {
		e.mu.room = false
		e.wake()
	}
}

// wake wakes the driver from its sleep in the kernel.
func (e *uringEngine) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	for {
		_, err := unix.Write(e.event, one[:])
		if err == nil {
			return
		}
		if err != unix.EINTR {
			panic(fmt.Sprintf("blockio: write to an eventfd: %v", err)) // it is ours and open
		}
	}
}

func (e *uringEngine) close() error {
	e.mu.Lock()
	if e.mu.closing {
		e.mu.Unlock()
		return nil
	}
	e.mu.closing = true
	e.wakeLocked()
	e.mu.Unlock()
	e.work.Signal()
	e.ended.Wait()
	return nil
}

// drive is the engine's goroutine.
func (e *uringEngine) drive(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		_ = unix.Close(e.event)
		unmapMemory(e.eventBuf)
	}()
	// One more entry, for the event counter.
	r, err := makeRing(e.depth + 1)
	if err != nil {
		started <- err
		return
	}
	e.ring = r
	defer r.close()
	started <- nil
	for e.fill() {
		inFlight := e.depth - len(e.free)
		e.dev.inFlight(inFlight)
		if err := r.enter(atLeast(inFlight)); err != nil && err != unix.EINTR {
			if err != unix.EAGAIN && err != unix.EBUSY && err != unix.ENOMEM {
				panic(fmt.Sprintf("blockio: io_uring_enter: %v", err)) // the arguments are ours
			}
			// The kernel lacks memory for further requests. It continues with those that it has.
			time.Sleep(time.Millisecond)
		}
		e.collect()
	}
	e.disarm()
}

// atLeast returns the number of completions for which the driver sleeps. Waking up for each of them
// would cost more than a read. The driver wakes up after a quarter of the reads in flight; the
// others keep the device busy until it has submitted more.
func atLeast(inFlight int) int { return max(1, min(inFlight/4, 32)) }

// fill moves as many queued reads to the ring as fit. It sleeps while there is nothing to do, and
// returns false when the engine has to end.
func (e *uringEngine) fill() bool {
	for r := e.again.pop(); r != nil; r = e.again.pop() {
		e.push(r) // its slot was just freed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.room = false
	for e.mu.queue.n == 0 && len(e.free) == e.depth {
		if e.mu.closing {
			return false
		}
		e.work.Wait()
	}
	for e.mu.queue.n > 0 && len(e.free) > 0 {
		e.push(e.mu.queue.pop())
	}
	if len(e.free) > 0 {
		// A submit wakes the driver while it sleeps and there is room.
		e.mu.room = true
		if !e.armed {
			e.ring.pushRead(e.event, e.eventBuf[:8], 0, eventData)
			e.armed = true
		}
	}
	return true
}

// push submits the missing part of a read to the ring.
func (e *uringEngine) push(r *Read) {
	last := len(e.free) - 1
	slot := e.free[last]
	e.free = e.free[:last]
	e.slots[slot] = r
	e.ring.pushRead(r.File.(*osFile).fd, r.Buf[r.done:], r.Offset+int64(r.done), uint64(slot))
}

// collect takes completions out of the ring and delivers finished reads.
func (e *uringEngine) collect() {
	e.delivered = e.delivered[:0]
	e.ring.reap(e.completed)
	e.dev.stats.engineCalls.Add(1)
	if len(e.delivered) > 0 {
		Deliver(e.delivered)
		clear(e.delivered)
	}
}

// completed is called for each completion.
func (e *uringEngine) completed(userData uint64, result int32) {
	if userData == eventData {
		e.armed = false
		return
	}
	r := e.slots[userData]
	e.slots[userData] = nil
	e.free = append(e.free, uint32(userData))
	switch errno := unix.Errno(-result); {
	case result > 0:
		r.done += int(result)
		if r.done < len(r.Buf) {
			if r.done%e.dev.unit == 0 {
				e.again.push(r)
				return
			}
			r.Err = io.ErrUnexpectedEOF // only the end of a file ends a read within a block
		}
	case result == 0:
		r.Err = io.ErrUnexpectedEOF
	case errors.Is(errno, unix.EAGAIN), errors.Is(errno, unix.EINTR):
		e.again.push(r)
		return
	default:
		r.Err = errno
	}
	e.dev.finish(r)
	e.delivered = append(e.delivered, r)
}

// disarm completes the read of the event counter, which owns a buffer.
func (e *uringEngine) disarm() {
	if e.armed {
		e.wake()
	}
	for e.armed {
		_ = e.ring.enter(1) // retried until the read has ended
		e.collect()
	}
}
