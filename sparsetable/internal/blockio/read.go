package blockio

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// A Read is one read of a file. The caller sets File, Offset and Buf, submits it, and gets it back
// from Completions.Wait; it may then be reused.
type Read struct {
	File   File
	Offset int64
	// Buf is filled entirely, or Err is set. Err is io.ErrUnexpectedEOF if the file ends before Buf
	// is full.
	Buf []byte
	Err error
	// Cookie and User are for the caller; the device ignores them.
	Cookie uint64
	User   any

	owner *Completions
	next  *Read // in a queue of the device
	done  int   // bytes read so far
}

// Done returns the number of bytes read so far; for implementations of Device.
func (r *Read) Done() int { return r.done }

// SetDone sets the number of bytes read; for implementations of Device.
func (r *Read) SetDone(n int) { r.done = n }

// ErrWithin returns Err for a caller that needs only the first n bytes: the file may end after them
// if the rest was read only for alignment.
func (r *Read) ErrWithin(n int) error {
	if r.done >= n && errors.Is(r.Err, io.ErrUnexpectedEOF) {
		return nil
	}
	return r.Err
}

// Completions collects the finished reads of one caller. The zero value is ready; it must not be
// copied. Only one goroutine at a time may call Wait.
type Completions struct {
	mu      sync.Mutex
	cond    sync.Cond // on mu; set up by the first Begin
	ready   []*Read   // finished, not collected
	pending int       // submitted, not collected; includes ready
	want    int       // a waiter sleeps until len(ready) reaches want; 0: none
}

// Pending returns the number of reads that were submitted and not yet returned
// by Wait.
func (c *Completions) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}

// Wait appends finished reads to dst. It waits until at least atLeast reads are finished (at least
// one, and all of them if fewer are pending), and appends all that are finished. If nothing is
// pending, it returns dst at once. Waiting for several reads at a time saves wake-ups.
func (c *Completions) Wait(dst []*Read, atLeast int) []*Read {
	c.mu.Lock()
	defer c.mu.Unlock()
	atLeast = max(atLeast, 1)
	for len(c.ready) < min(atLeast, c.pending) {
		c.want = min(atLeast, c.pending)
		c.cond.Wait()
	}
	c.want = 0
	dst = append(dst, c.ready...)
	c.pending -= len(c.ready)
	clear(c.ready)
	c.ready = c.ready[:0]
	return dst
}

// Begin counts reads as pending and records that they belong to c. Implementations of Device call
// it first in Submit.
func (c *Completions) Begin(reads []*Read) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cond.L == nil {
		c.cond.L = &c.mu
	}
	for _, r := range reads {
		if r.owner != nil {
			panic(fmt.Sprintf("blockio: the read of %d bytes at %d was submitted twice", len(r.Buf), r.Offset))
		}
		r.owner, r.next, r.done, r.Err = c, nil, 0, nil
	}
	c.pending += len(reads)
}

// Deliver passes finished reads, with Err set, to their owners. It locks an owner only once for
// several consecutive reads of that owner. Implementations of Device deliver each read exactly
// once.
func Deliver(reads []*Read) {
	for len(reads) > 0 {
		c := reads[0].owner
		n := 1
		for n < len(reads) && reads[n].owner == c {
			n++
		}
		c.mu.Lock()
		for _, r := range reads[:n] {
			r.owner = nil
			c.ready = append(c.ready, r)
		}
		wake := c.want > 0 && len(c.ready) >= c.want
		if wake {
			c.want = 0
		}
		c.mu.Unlock()
		if wake {
			c.cond.Signal()
		}
		reads = reads[n:]
	}
}

// readList is a FIFO queue of reads, linked through them.
type readList struct {
	head, tail *Read
	n          int
}

func (l *readList) push(r *Read) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

func (l *readList) pop() *Read {
	r := l.head
	if r == nil {
		return nil
	}
	l.head = r.next
	if l.head == nil {
		l.tail = nil
	}
	r.next = nil
	l.n--
	return r
}
