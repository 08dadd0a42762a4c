package blocktest

import (
	"sync"
	"time"

	"aibox/sparsetable/internal/blockio"
)

// Limited is a device that serves a limited number of submitted reads a second, whatever number of
// them is waiting. It lets several simulated SSDs share one real SSD, or none. Everything else is
// passed to the inner device.
type Limited struct {
	blockio.Device
	each time.Duration // for one read

	mu struct {
		sync.Mutex
		queue   []*blockio.Read
		serving bool
		next    time.Time // when the next read may be served
	}
	idle sync.Cond // on mu: serving became false
}

// NewLimited limits a device to that many reads a second.
func NewLimited(inner blockio.Device, readsPerSecond float64) *Limited {
	d := &Limited{Device: inner, each: time.Duration(float64(time.Second) / readsPerSecond)}
	d.idle.L = &d.mu
	return d
}

// Submit implements blockio.Device.
func (d *Limited) Submit(c *blockio.Completions, reads []*blockio.Read) {
	if len(reads) == 0 {
		return
	}
	c.Begin(reads)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.queue = append(d.mu.queue, reads...)
	if !d.mu.serving {
		d.mu.serving = true
		if now := time.Now(); d.mu.next.Before(now) {
			d.mu.next = now // what was not used is lost
		}
		go d.serve()
	}
}

// serve serves queued reads when their time comes, and returns when there are none. Reads whose
// time came while it slept are served together.
func (d *Limited) serve() {
	var c blockio.Completions
	for {
		d.mu.Lock()
		if len(d.mu.queue) == 0 {
			d.mu.serving = false
			d.idle.Broadcast()
			d.mu.Unlock()
			return
		}
		n := 0
		for now := time.Now(); n < len(d.mu.queue) && !d.mu.next.After(now); n++ {
			d.mu.next = d.mu.next.Add(d.each)
		}
		due := d.mu.queue[:n:n]
		d.mu.queue = d.mu.queue[n:]
		wait := time.Until(d.mu.next)
		d.mu.Unlock()
		d.carryOut(&c, due)
		if n == 0 {
			time.Sleep(wait)
		}
	}
}

// carryOut performs reads on the inner device and delivers them.
func (d *Limited) carryOut(c *blockio.Completions, reads []*blockio.Read) {
	inner := make([]*blockio.Read, len(reads))
	for i, r := range reads {
		inner[i] = &blockio.Read{File: r.File, Offset: r.Offset, Buf: r.Buf, User: r}
	}
	d.Device.Submit(c, inner)
	var done []*blockio.Read
	for c.Pending() > 0 {
		done = c.Wait(done[:0], c.Pending())
		back := make([]*blockio.Read, len(done))
		for i, r := range done {
			back[i] = r.User.(*blockio.Read)
			back[i].Err = r.Err
			back[i].SetDone(r.Done())
		}
		blockio.Deliver(back)
	}
}

// Close implements blockio.Device.
func (d *Limited) Close() error {
	d.mu.Lock()
	for d.mu.serving {
		d.idle.Wait()
	}
	d.mu.Unlock()
	return d.Device.Close()
}

var _ blockio.Device = (*Limited)(nil)
