package hadoop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"golang.org/x/sync/errgroup"

	"aibox/internal/panics"
	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/login"
)

// Cluster is one HDFS: its configuration and its idle sessions. It implements fsys.FileSystem.
type Cluster struct {
	authority string // as in URIs
	conf      *clusterConf
	nameNodes nameNodes
	krb       *login.Kerberos // nil without Kerberos
	timeout   time.Duration
	retry     time.Duration
	log       *slog.Logger

	// reached says that a NameNode has served at least once. Until then, some errors
	// more likely mean that the configuration is wrong. readOnce says that a DataNode
	// has delivered bytes at least once.
	reached, readOnce atomic.Bool

	nodes          nodes    // DataNodes that failed
	keys           dataKeys // for the transfer of data
	zones          zones
	warnings       limitedLog
	allowUnchecked bool // replicas without checksums may be read if there is no other one
	leftoverAge    time.Duration

	mu struct {
		sync.Mutex
		idle   []*session // most recently used last
		prune  *time.Timer
		closed bool
	}
}

const (
	// maxIdleSessions is roughly the number of readers that a job uses at the same
	// time; each session costs a socket and one lease renewal per second.
	maxIdleSessions = 16
	// idleTime is the time without use after which all idle sessions are closed.
	idleTime = 20 * time.Second
)

// New returns the cluster of an authority (a host with a port, or a name service), without
// connecting to it.
func New(authority string, opts *Options, log *slog.Logger) (*Cluster, error) {
	conf, err := loadClusterConf(authority, opts)
	if err != nil {
		return nil, err
	}
	c := &Cluster{authority: authority, conf: conf, timeout: opts.timeout(), retry: opts.retry(), log: log,
		warnings: limitedLog{log: log}, allowUnchecked: opts.AllowMissingChecksums, leftoverAge: leftoverAge}
	c.nameNodes.init(conf.addresses)
	if conf.kerberos {
		c.krb = login.New(login.Options{Principal: opts.KerberosPrincipal, Keytab: opts.KerberosKeytab, CCache: opts.KerberosCCache,
			Krb5Conf: opts.Krb5Conf, Realm: conf.realm})
	}
	return c, nil
}

func (c *Cluster) URI(path string) string { return "hdfs://" + c.authority + path }

// acquire returns an idle session or a new one. For a retry, it always makes a new one. failing is
// when the operation began to fail; the zero time means that it has not failed.
func (c *Cluster) acquire(ctx context.Context, failing time.Time) (*session, error) {
	for failing.IsZero() {
		c.mu.Lock()
		n := len(c.mu.idle)
		if n == 0 {
			c.mu.Unlock()
			break
		}
		s := c.mu.idle[n-1]
		c.mu.idle = c.mu.idle[:n-1]
		c.mu.Unlock()
		if !s.lostNameNode() {
			return s, nil
		}
		s.close()
	}
	return c.newSession(ctx, failing)
}

// release keeps a session that has seen no error for the next acquire. It closes the session if its
// NameNode or its context has failed, or enough sessions are idle.
func (c *Cluster) release(s *session) {
	s.pooled = true
	lost := s.lostNameNode()
	c.mu.Lock()
	keep := s.ctx.Err() == nil && !lost && !c.mu.closed && len(c.mu.idle) < maxIdleSessions
	if keep {
		c.mu.idle = append(c.mu.idle, s)
		if c.mu.prune == nil {
			c.mu.prune = time.AfterFunc(idleTime, c.dropIdle)
		} else {
			c.mu.prune.Reset(idleTime)
		}
	}
	c.mu.Unlock()
	if !keep {
		s.close()
	}
}

// dropIdle ends all idle sessions.
func (c *Cluster) dropIdle() {
	c.mu.Lock()
	idle := c.mu.idle
	c.mu.idle = nil
	c.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
}

func (c *Cluster) Close() {
	c.mu.Lock()
	c.mu.closed = true
	if c.mu.prune != nil {
		c.mu.prune.Stop()
	}
	c.mu.Unlock()
	c.dropIdle()
	c.zones.close()
	if c.krb != nil {
		c.krb.Forget()
	}
}

// do runs fn with a session, and runs it again after transient faults.
func (c *Cluster) do(ctx context.Context, op, path string, fn func(*session) error) error {
	return c.repeat(ctx, &retrier{c: c, op: op, path: path}, fn)
}

// repeat is do. r is the state of the operation's retries.
func (c *Cluster) repeat(ctx context.Context, r *retrier, fn func(*session) error) error {
	for {
		err := c.once(ctx, r, fn)
		if err == nil {
			return nil
		}
		if err := r.wait(ctx, err); err != nil {
			return err
		}
	}
}

// once runs fn with a session, without retries. r is the state of the operation's retries.
func (c *Cluster) once(ctx context.Context, r *retrier, fn func(*session) error) error {
	s, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	unbind := s.bind(ctx)
	err = fn(s)
	unbind()
	if err != nil {
		err = s.explain(err)
		r.lostNameNode = s.lostNameNode()
		s.close()
		return err
	}
	c.release(s)
	return nil
}

func entryOf(p string, info os.FileInfo) fsys.Entry {
	return fsys.Entry{Path: p, Size: info.Size(), Dir: info.IsDir(), ModTime: info.ModTime()}
}

func (c *Cluster) Stat(ctx context.Context, p string) (e fsys.Entry, err error) {
	p = CleanPath(p)
	err = c.do(ctx, "open", p, func(s *session) error {
		info, err := s.client.Stat(p)
		if err != nil {
			return err
		}
		e = entryOf(p, info)
		return c.readable(p, info)
	})
	return e, err
}

// SharesNameNode reports whether the two clusters have a NameNode address in common.
func (c *Cluster) SharesNameNode(other *Cluster) bool {
	return slices.ContainsFunc(c.conf.addresses, func(address string) bool { return slices.Contains(other.conf.addresses, address) })
}

// CleanPath returns the path in the only form that NameNodes accept: without empty,
// "." or ".." elements.
func CleanPath(p string) string { return path.Clean("/" + p) }

func (c *Cluster) List(ctx context.Context, dir string) (entries []fsys.Entry, err error) {
	dir = CleanPath(dir)
	err = c.do(ctx, "list", dir, func(s *session) error {
		entries = nil
		infos, err := s.client.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, info := range infos {
			e := entryOf(fsys.Join(dir, info.Name()), info)
			e.Fault = c.readable(e.Path, info)
			entries = append(entries, e)
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b fsys.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, err
}

// readable refuses symbolic links, which occur only in lists of directories, and files whose
// erasure coding is not supported.
func (c *Cluster) readable(p string, info os.FileInfo) error {
	st, ok := info.Sys().(*hdfs.FileStatus)
	switch {
	case !ok || info.IsDir():
		return nil
	case st.GetFileType().String() == "IS_SYMLINK":
		return &fsys.Error{Op: "open", URI: c.URI(p), Kind: fsys.ErrUnsupported,
			Err: fmt.Errorf("it is a symbolic link to %s", st.GetSymlink()), Hint: "Hadoop does not follow it either: name its target"}
	}
	if _, err := codingOf(info); err != nil {
		return &fsys.Error{Op: "open", URI: c.URI(p), Kind: fsys.ErrUnsupported, Err: err,
			Hint: "copy it to a directory with the replication policy (hdfs ec -setPolicy -replicate)"}
	}
	return nil
}

// checkParallel bounds the calls in flight when files are checked; a NameNode
// answers one in about 0.3 ms.
const checkParallel = 8

// Check asks the NameNode for the locations of every file, and a KMS for the key of encrypted ones.
// It reports files without read permission, files without a usable key, and files that are still
// being written.
func (c *Cluster) Check(ctx context.Context, files []fsys.Entry) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(checkParallel)
	errs := make([]error, len(files)) // by file, so that the first one in the order of the files is reported
	for i, f := range files {
		g.Go(func() error {
			errs[i] = panics.Do("checking "+c.URI(f.Path), func() error { return c.checkFile(ctx, f) })
			return errs[i]
		})
	}
	first := g.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return first
}

func (c *Cluster) checkFile(ctx context.Context, f fsys.Entry) error {
	var st blockState
	err := c.do(ctx, "open", f.Path, func(s *session) (err error) {
		if st, err = s.blockState(f.Path); err == nil {
			err = c.checkKey(ctx, st.zone)
		}
		return err
	})
	if err != nil || !st.underConstruction {
		return err
	}
	return &fsys.Error{Op: "open", URI: c.URI(f.Path), Kind: fsys.ErrBeingWritten,
		Err:  fmt.Errorf("%d bytes of it are visible so far", st.length),
		Hint: "wait until its writer has closed it, leave it out of the job's input, or, if the writer has died, run `hdfs debug recoverLease -path " + f.Path + "`"}
}
