package hadoop

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// patientConn is a connection to a DataNode to which a block is written. The DataNode may be slow,
// or the way to it, but it must not hang: an operation fails when an answer is awaited and nothing
// has moved for the time limit. Four uploads that share a slow line, or a limit on bytes in a
// second, take longer than that for a packet of 64 KiB each.
type patientConn struct {
	*net.TCPConn
	timeout    time.Duration
	unanswered atomic.Int64 // requests and packets of which the answers are awaited
}

// looks is how often it is looked within the time limit whether bytes have moved.
const looks = 4

func (c *patientConn) Read(b []byte) (int, error) {
	for w := c.wait(); ; {
		if err := c.SetReadDeadline(w.until()); err != nil {
			return 0, err
		}
		n, err := c.TCPConn.Read(b)
		if n > 0 || err == nil || !isTimeout(err) || w.over() {
			return n, err
		}
	}
}

func (c *patientConn) Write(b []byte) (done int, err error) {
	for w := c.wait(); ; {
		if err := c.SetWriteDeadline(w.until()); err != nil {
			return done, err
		}
		n, err := c.TCPConn.Write(b[done:])
		done += n
		if err == nil || !isTimeout(err) || w.over() {
			return done, err
		}
	}
}

// connWait is a wait for the other side.
type connWait struct {
	c         *patientConn
	delivered uint64
	idle      int // looks in a row at which nothing had moved
}

func (c *patientConn) wait() *connWait { return &connWait{c: c, delivered: c.delivered()} }

// until is when to look next.
func (w *connWait) until() time.Time { return time.Now().Add(w.c.timeout / looks) }

// over reports whether nothing has moved for the time limit. At the first look, something may have
// moved before.
func (w *connWait) over() bool {
	now := w.c.delivered()
	if now != w.delivered || w.c.unanswered.Load() == 0 {
		w.delivered, w.idle = now, 0
		return false
	}
	w.idle++
	return w.idle > looks
}

// delivered is how many bytes the kernel of the other side has got; 0: this kernel does not say.
func (c *patientConn) delivered() (bytes uint64) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // it fails if the connection is closed, which is noticed elsewhere
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = info.Bytes_acked
		}
	})
	return bytes
}
