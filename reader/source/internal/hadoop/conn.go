package hadoop

import (
	"context"
	"net"
	"time"
)

// The client library has no timeouts. It lets its caller dial the connections, so the
// connections made here add them.

// nodeConn is a connection of one session to its NameNode.
type nodeConn struct {
	net.Conn
	s        *session
	seen     answers
	requests *requests // nil: requests are sent unchanged
}

// dial connects to the NameNode. The library calls it with context.Background().
func (s *session) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	d := net.Dialer{Timeout: s.c.timeout}
	raw, err := d.DialContext(ctx, network, addr)
	if s.ctx.Err() != nil {
		if err == nil {
			_ = raw.Close() // the connection was not used
		}
		return nil, net.ErrClosed
	}
	if err != nil {
		s.nameNodeFault(err)
		return nil, err
	}
	c := &nodeConn{Conn: raw, s: s}
	if s.ticketKey != nil {
		c.requests = &requests{key: *s.ticketKey}
		c.seen.whole = c.requests.saw
	}
	s.track(c)
	return c, nil
}

// Read implements net.Conn with a time limit.
func (c *nodeConn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.s.c.timeout)); err != nil {
		return 0, c.fault(err)
	}
	n, err := c.Conn.Read(p)
	if err == nil {
		if err = c.seen.saw(p[:n]); err != nil {
			n = 0 // a caller that gets bytes with an error might use the bytes
		}
	}
	if err != nil {
		err = c.fault(err)
	}
	return n, err
}

// Write implements net.Conn with a time limit. The library writes a whole request at a time.
func (c *nodeConn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.s.c.timeout)); err != nil {
		return 0, c.fault(err)
	}
	sent, err := c.requests.of(p)
	if err == nil {
		_, err = c.Conn.Write(sent)
	}
	if err != nil {
		return 0, c.fault(err)
	}
	return len(p), nil
}

// fault closes a connection that failed: half of a message may have been read, and
// the library would take the other half for the next message.
func (c *nodeConn) fault(err error) error {
	_ = c.Conn.Close()        // err says more
	if c.s.ctx.Err() == nil { // otherwise the session itself has closed it
		c.s.nameNodeFault(err)
	}
	return err
}

// Close implements net.Conn.
func (c *nodeConn) Close() error {
	c.s.untrack(c)
	return c.Conn.Close()
}

// SetDeadline does nothing: every operation has its own time limit. The library only
// calls it with the zero time.
func (c *nodeConn) SetDeadline(time.Time) error { return nil }
