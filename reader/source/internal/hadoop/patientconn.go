package hadoop

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// patientConn is a connection to a DataNode for writing a block. The DataNode and the network may
// be slow, but must not hang: an operation fails if an answer is awaited and no bytes have moved
// for the time limit. A deadline for the whole operation would be too short: if four uploads share
// a slow line or a rate limit, each may take longer for a packet of 64 KiB.
type patientConn struct {
	*net.TCPConn
	timeout    time.Duration
	unanswered atomic.Int64 // requests and packets whose answers are awaited
}

// checksPerTimeout is how many times within the time limit it is checked whether bytes have moved.
const checksPerTimeout = 4

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
	idle      int // consecutive checks at which nothing had moved
}

func (c *patientConn) wait() *connWait { return &connWait{c: c, delivered: c.delivered()} }

// until returns the time of the next look.
func (w *connWait) until() time.Time { return time.Now().Add(w.c.timeout / checksPerTimeout) }

// over reports whether nothing has moved for the time limit. It needs one idle look more than fit
// in the limit, since the answer may have become due just before the first of them.
func (w *connWait) over() bool {
	now := w.c.delivered()
	if now != w.delivered || w.c.unanswered.Load() == 0 {
		w.delivered, w.idle = now, 0
		return false
	}
	w.idle++
	return w.idle > checksPerTimeout
}

// delivered returns how many bytes the other side's kernel has acknowledged, or 0 if this kernel
// does not say.
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
