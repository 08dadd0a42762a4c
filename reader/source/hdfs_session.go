package source

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/colinmarc/hdfs/v2"
)

// session is one client of the library with its connections. It is used by
// one goroutine at a time (the library's own lease goroutine aside), so that
// its connections can be told which reader they serve, can be closed when
// that reader's context ends, and its NameNode calls wait for no one else's.
// A session that saw any error is thrown away: the library keeps broken
// connections, back-off times and encryption keys.
type session struct {
	c      *cluster
	client *hdfs.Client
	pooled bool // was used before
	// detached: the library's lease goroutine has ended; see detach.
	detached bool

	ctx   context.Context // ends with abort
	abort context.CancelFunc

	// mu guards what the library's own goroutines (lease renewal, write
	// acknowledgements) touch as well.
	mu struct {
		sync.Mutex
		conns       map[*nodeConn]struct{}
		faults      []string // DataNodes that failed since the last resetFaults
		nameNodeErr error    // last failed dial of a NameNode
	}

	// Touched only by the goroutine that uses the session: the library dials
	// and reads DataNodes in the goroutine that calls it.
	target    []byte    // the buffer of the read in progress
	unchecked bool      // a read into target was refused
	dataConn  *nodeConn // the last DataNode connection
	suspects  []string  // DataNodes given up without an I/O fault: bad replica or refusal
}

// newSession connects to the (first answering) NameNode.
func (c *cluster) newSession(ctx context.Context) (*session, error) {
	s := &session{c: c}
	s.mu.conns = make(map[*nodeConn]struct{})
	s.ctx, s.abort = context.WithCancel(context.Background())
	context.AfterFunc(s.ctx, s.closeConns)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()

	opts := c.conf.base
	opts.NamenodeDialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return s.dial(ctx, network, addr, false)
	}
	opts.DatanodeDialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return s.dial(ctx, network, addr, true)
	}
	var err error
	if c.krb != nil {
		if opts.KerberosClient, err = c.krb.get(); err != nil {
			s.abort()
			return nil, &loginError{err}
		}
	}
	if s.client, err = hdfs.NewClient(opts); err != nil {
		s.abort()
		return nil, ctxErr(ctx, s.explain(err))
	}
	return s, nil
}

// explain adds the cause to the library's "no available namenodes", which
// holds its text alone.
func (s *session) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.nameNodeErr != nil && strings.Contains(err.Error(), "no available namenodes") {
		return fmt.Errorf("no NameNode answers: %w", s.mu.nameNodeErr)
	}
	return err
}

// loginError is a failed Kerberos login.
type loginError struct{ err error }

func (e *loginError) Error() string { return "Kerberos: " + e.err.Error() }
func (e *loginError) Unwrap() error { return e.err }

// bind ends the session's connections when ctx ends; the returned function
// ends the binding.
func (s *session) bind(ctx context.Context) (unbind func() bool) {
	return context.AfterFunc(ctx, s.abort)
}

func (s *session) track(c *nodeConn) {
	s.mu.Lock()
	s.mu.conns[c] = struct{}{}
	s.mu.Unlock()
	if s.ctx.Err() != nil { // closeConns may have missed it
		_ = c.Conn.Close()
	}
}

func (s *session) untrack(c *nodeConn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	s.mu.Unlock()
}

func (s *session) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.conns {
		_ = c.Conn.Close() // whoever uses it gets the error
	}
}

// close ends the connections and the library's lease goroutine.
func (s *session) close() {
	s.abort()
	s.closeConns()
	if !s.detached { // the library's second Close panics
		_ = s.client.Close() // its connection is closed already
	}
}

// detach ends the connection to the NameNode and the lease renewal, which a
// FileReader that knows its blocks does not need: it then costs a DataNode
// connection alone. Should it need the NameNode after all, the library
// connects again. A detached session is not reused.
func (s *session) detach() {
	if !s.detached {
		s.detached = true
		_ = s.client.Close() // a connection without a call in progress
	}
}

// replaceDataConn is called when the library dials a DataNode. A previous
// connection that it has not closed is one it gave up in mid-block and would
// leak; if that had no I/O fault, its replica was bad.
func (s *session) replaceDataConn(c *nodeConn) {
	if old := s.dataConn; old != nil && !old.closed.Load() {
		s.suspect(old)
		_ = old.Close() // given up
	}
	s.dataConn = c
}

func (s *session) suspect(c *nodeConn) {
	if !c.failed.Load() && !s.unchecked {
		s.suspects = append(s.suspects, c.node)
		s.c.log.Warn("HDFS: a DataNode's replica is corrupted or was refused; another one is used", "datanode", c.node)
	}
}

func (s *session) nodeFault(node string, err error) {
	s.mu.Lock()
	s.mu.faults = append(s.mu.faults, node)
	s.mu.Unlock()
	s.c.log.Warn("HDFS: a DataNode failed", "datanode", node, "error", err)
}

func (s *session) resetFaults() {
	s.suspects, s.unchecked = nil, false
	s.mu.Lock()
	s.mu.faults = nil
	s.mu.Unlock()
}

// faulty lists the DataNodes that failed.
func (s *session) faulty() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.faults)
}
