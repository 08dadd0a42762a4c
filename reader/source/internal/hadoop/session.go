package hadoop

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/jcmturner/gokrb5/v8/types"

	"aibox/reader/source/internal/hadoop/internal/login"
)

// session is one client of the library with its connections. It is used by one
// goroutine at a time (except for the library's own lease goroutine), so that its
// connection can be closed when the context of its user ends, and its calls wait for
// no others. A session that has seen an error is thrown away, because the library
// would keep broken connections, back-off times and encryption keys.
type session struct {
	c        *Cluster
	client   *hdfs.Client
	nameNode int  // its index in c.nameNodes
	pooled   bool // it was used before
	// ticketKey is the key of the ticket for the NameNode; nil without Kerberos.
	ticketKey *types.EncryptionKey

	ctx   context.Context // ends with abort
	abort context.CancelFunc

	// mu guards what the library's own goroutine (lease renewal) touches as well.
	mu struct {
		sync.Mutex
		conns       map[*nodeConn]struct{}
		nameNodeErr error // first failed operation on the NameNode's connection
	}
}

// connect makes a session with NameNode i, and checks that it serves: it may hang or
// be on standby, which a connection alone does not show.
func (c *Cluster) connect(ctx context.Context, i int) (*session, error) {
	s := &session{c: c, nameNode: i}
	s.mu.conns = make(map[*nodeConn]struct{})
	s.ctx, s.abort = context.WithCancel(context.Background())
	context.AfterFunc(s.ctx, s.closeConns)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()

	opts := c.conf.base
	opts.Addresses = []string{c.nameNodes.addresses[i]}
	opts.NamenodeDialFunc = s.dial
	if c.krb != nil {
		t, err := c.login(ctx, c.conf.base.KerberosServicePrincipleName, opts.Addresses[0])
		if err != nil {
			s.abort()
			return nil, err
		}
		opts.KerberosClient, opts.KerberosServicePrincipleName, s.ticketKey = t.Client, t.Service, &t.Key
	}
	var err error
	if s.client, err = hdfs.NewClient(opts); err != nil {
		s.abort()
		return nil, s.explain(err)
	}
	// This is the cheapest call that a standby refuses.
	defaults, err := s.client.ServerDefaults()
	if err != nil {
		s.close()
		return nil, s.explain(err)
	}
	c.zones.setKeyProvider(defaults.KeyProviderURI)
	return s, nil
}

// login returns a ticket for the service at an address. _HOST in principal stands for the host name
// in lower case. As in Hadoop, if the KDC does not know that principal, as for an IP address or a
// short name, the host name is looked up in DNS.
func (c *Cluster) login(ctx context.Context, principal, address string) (*login.Ticket, error) {
	host, _, _ := net.SplitHostPort(address) // it has a port: withPort or kms.New has seen to that
	t, err := c.krb.Get(strings.Replace(principal, "_HOST", strings.ToLower(host), 1))
	if errors.Is(err, login.ErrUnknownService) {
		if name := canonicalName(ctx, c.timeout, host); name != "" && name != host {
			t, err = c.krb.Get(strings.Replace(principal, "_HOST", name, 1))
		}
	}
	if err != nil && !errors.Is(err, login.ErrUnknownService) { // the KDC may know the principal of another NameNode
		err = &loginError{err}
	}
	return t, err
}

// canonicalName returns the DNS name of a host's address, or "" if it has none.
func canonicalName(ctx context.Context, timeout time.Duration, host string) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return ""
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addresses[0])
	if err != nil || len(names) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(names[0], "."))
}

// explain returns the cause of the library's error "no available namenodes", which has it only as
// text or not at all, or the answer with which the NameNode refused the connection. It returns
// other errors unchanged.
func (s *session) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.nameNodeErr != nil && strings.Contains(err.Error(), "no available namenodes") || errors.As(s.mu.nameNodeErr, new(*fatalAnswer)) {
		return s.mu.nameNodeErr
	}
	return err
}

// nameNodeFault records that an operation on the NameNode's connection failed.
func (s *session) nameNodeFault(err error) {
	s.mu.Lock()
	s.mu.nameNodeErr = cmp.Or(s.mu.nameNodeErr, err) // later errors follow from the first
	s.mu.Unlock()
	s.c.nameNodes.failed(s.nameNode, err)
}

// lostNameNode reports whether the NameNode's connection failed, or the NameNode was silent in
// another session.
func (s *session) lostNameNode() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.nameNodeErr != nil || s.c.nameNodes.wasSilent(s.nameNode)
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
	if s.ctx.Err() != nil { // closeConns may have run before the connection was registered
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
		_ = c.Conn.Close() // the goroutine that uses the connection gets the error
	}
}

// close ends the connections and the library's lease goroutine.
func (s *session) close() {
	s.abort()
	s.closeConns()
	_ = s.client.Close() // its connection is closed already
}
