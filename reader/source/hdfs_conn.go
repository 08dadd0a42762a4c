package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
	"unsafe"
)

// The client library has no timeouts, and one way to hand out bytes that
// failed their checksum. Both are cured at the connections, which it lets us
// dial.

// dataNodeBufferBytes is read from a DataNode at a time. The library reads
// chunk by chunk (512 bytes); with 256 KiB below it one stream gives about
// 300 MB/s, with 64 KiB about 10 % less.
const dataNodeBufferBytes = 256 << 10

// errUnchecked is returned to the library when it is about to read from the
// wire straight into our buffer; see hdfsReader.fill.
var errUnchecked = errors.New("read would bypass the checksum")

// nodeConn is a connection of one session to a NameNode or DataNode.
type nodeConn struct {
	net.Conn
	s        *session
	node     string
	dataNode bool
	r        *bufio.Reader // DataNode only
	failed   atomic.Bool   // an I/O operation failed
	closed   atomic.Bool   // by the library

	// sasl: we began with a SASL handshake. challenge is then the start of the
	// DataNode's side of it, which tells the protection it insists on.
	wrote, sasl bool
	challenge   []byte
}

// saslMagic begins a SASL handshake with a DataNode.
var saslMagic = []byte{0xDE, 0xAD, 0xBE, 0xEF}

// challengeBytes is enough for the handshake's first message.
const challengeBytes = 1 << 10

// dial connects to a node. The library calls it with context.Background().
func (s *session) dial(ctx context.Context, network, addr string, dataNode bool) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	d := net.Dialer{Timeout: s.c.timeout}
	raw, err := d.DialContext(ctx, network, addr)
	if s.ctx.Err() != nil {
		if err == nil {
			_ = raw.Close() // unused
		}
		return nil, net.ErrClosed
	}
	if err != nil {
		if dataNode {
			s.nodeFault(addr, err)
		} else {
			s.mu.Lock()
			s.mu.nameNodeErr = err
			s.mu.Unlock()
		}
		return nil, err
	}
	c := &nodeConn{Conn: raw, s: s, node: addr, dataNode: dataNode}
	if dataNode {
		c.r = bufio.NewReaderSize(rawReader{c}, dataNodeBufferBytes)
		s.replaceDataConn(c)
	}
	s.track(c)
	return c, nil
}

// Read implements net.Conn with a time limit.
func (c *nodeConn) Read(p []byte) (int, error) {
	if !c.dataNode {
		return c.readRaw(p)
	}
	if overlaps(c.s.target, p) {
		c.s.unchecked = true
		return 0, errUnchecked
	}
	return c.r.Read(p)
}

// overlaps says whether p starts inside buf's memory.
func overlaps(buf, p []byte) bool {
	if len(buf) == 0 || len(p) == 0 {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return at >= start && at < start+uintptr(len(buf))
}

// rawReader is the connection below a nodeConn's buffer.
type rawReader struct{ c *nodeConn }

func (r rawReader) Read(p []byte) (int, error) {
	n, err := r.c.readRaw(p)
	if c := r.c; c.sasl && len(c.challenge) < challengeBytes {
		c.challenge = append(c.challenge, p[:min(n, challengeBytes-len(c.challenge))]...)
	}
	return n, err
}

func (c *nodeConn) readRaw(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.s.c.timeout)); err != nil {
		return 0, c.fault(err)
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		err = c.fault(err)
	}
	return n, err
}

func (c *nodeConn) Write(p []byte) (int, error) {
	if !c.wrote { // before anything is read, and in the same goroutine
		c.wrote, c.sasl = true, c.dataNode && bytes.HasPrefix(p, saslMagic)
	}
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.s.c.timeout)); err != nil {
		return 0, c.fault(err)
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		err = c.fault(err)
	}
	return n, err
}

// fault closes a connection that failed: half a message may have been read,
// and the library would go on with the other half.
func (c *nodeConn) fault(err error) error {
	c.failed.Store(true)
	_ = c.Conn.Close() // err says more
	if c.dataNode && c.s.ctx.Err() == nil {
		c.s.nodeFault(c.node, err)
	}
	return err
}

// Close implements net.Conn.
func (c *nodeConn) Close() error {
	c.closed.Store(true)
	c.s.untrack(c)
	return c.Conn.Close()
}

// SetDeadline does nothing: every operation has its own limit. The library
// calls it with the zero time.
func (c *nodeConn) SetDeadline(time.Time) error { return nil }

// firstQop is the protection level that the DataNode offered first: "auth",
// "auth-int", "auth-conf", or "" if it offered none.
func (c *nodeConn) firstQop() string {
	_, rest, ok := bytes.Cut(c.challenge, []byte(`qop="`))
	if !ok {
		return ""
	}
	level, _, _ := bytes.Cut(rest, []byte(`"`))
	level, _, _ = bytes.Cut(level, []byte(","))
	return string(level)
}
