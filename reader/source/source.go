package source

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Options configures Sources. The zero value works for local files and for an
// HDFS without Kerberos.
type Options struct {
	HDFS   HDFSOptions
	Logger *slog.Logger // for retries and replaced replicas; default: slog.Default()
}

// HDFSOptions says how to reach HDFS beyond what core-site.xml and
// hdfs-site.xml say.
type HDFSOptions struct {
	// ConfDir holds core-site.xml and hdfs-site.xml. Default: $HADOOP_CONF_DIR,
	// then $HADOOP_HOME/etc/hadoop, $HADOOP_HOME/conf and /etc/hadoop/conf, if
	// they exist.
	ConfDir string
	// User is the user name without Kerberos. Default: $HADOOP_USER_NAME, then the
	// process's user.
	User string
	// KerberosPrincipal (user@REALM or user/host@REALM) logs in with the key table
	// KerberosKeytab. Without them the ticket cache is used, if the configuration or
	// KerberosCCache asks for Kerberos.
	KerberosPrincipal string
	KerberosKeytab    string
	KerberosCCache    string // default: $KRB5CCNAME, then /tmp/krb5cc_<uid>
	Krb5Conf          string // default: $KRB5_CONFIG, then /etc/krb5.conf
	// TimeoutMs is the time limit of one network operation; a node that takes longer
	// counts as hung. Default 10,000, which is longer than a full garbage collection
	// of a DataNode usually takes, and short enough for a fail-over to go unnoticed.
	TimeoutMs int
	// RetryMs bounds the time spent on retries of one operation without any progress,
	// from the first contact with the cluster on. Default 60,000, since a fail-over of
	// NameNodes takes 10 to 30 s. With NoRetry the first failure is final, but another
	// NameNode or another replica is still tried.
	RetryMs int
	// AllowMissingChecksums allows a replica whose checksums are lost to be read
	// without verification, with a warning, if no other replica can be read. Without
	// it, this is an error.
	AllowMissingChecksums bool
}

// NoRetry as HDFSOptions.RetryMs means no retries.
const NoRetry = -1

const (
	defaultTimeoutMs = 10_000
	defaultRetryMs   = 60_000
)

func (o *HDFSOptions) timeout() time.Duration {
	if o.TimeoutMs > 0 {
		return time.Duration(o.TimeoutMs) * time.Millisecond
	}
	return defaultTimeoutMs * time.Millisecond
}

func (o *HDFSOptions) retry() time.Duration {
	switch {
	case o.RetryMs > 0:
		return time.Duration(o.RetryMs) * time.Millisecond
	case o.RetryMs == NoRetry:
		return 0
	}
	return defaultRetryMs * time.Millisecond
}

// File is one input file, as listed. A caller that makes a File sets at least URI and
// Size.
type File struct {
	URI         string      `json:"uri"`  // local path, or hdfs://authority/path
	Size        int64       `json:"size"` // bytes, as stored
	Compression Compression `json:"compression"`
	ModTime     time.Time   `json:"mod_time,omitzero"` // zero: unknown, not checked
}

// ReaderAtCloser reads at any offset of one file. It is safe for concurrent
// use.
type ReaderAtCloser interface {
	io.ReaderAt
	io.Closer
}

// Writer writes one output file. Nothing is visible under the file's name
// before Close has returned nil; Abort discards what was written. Abort after
// Close does nothing.
type Writer interface {
	io.WriteCloser
	// Prepare does all that Close does, except that it does not give the file its name,
	// so that all of several files can be prepared before the first one appears.
	Prepare() error
	// Withdraw removes the file that Close has made visible. If it has replaced an
	// older one, which cannot be restored, it stays, and the error says so.
	Withdraw() error
	Abort() error
}

// replaced is the error of a Withdraw of a file that has replaced another one.
func replaced(uri string) error {
	return &Error{Op: "restore", URI: uri, Kind: ErrReplaced, Hint: "only some of the files that belong together are new now; write all of them again"}
}

// Sources reads and writes local files and files in HDFS. It owns the HDFS clients;
// Close ends them.
type Sources struct {
	opts Options
	log  *slog.Logger

	mu struct {
		sync.Mutex
		clusters map[string]*cluster // by authority
		closed   bool
	}
}

// fileSystem is what local files and HDFS have in common. Paths are absolute
// or relative local paths, or absolute HDFS paths. Errors are *Error.
type fileSystem interface {
	uri(path string) string
	stat(ctx context.Context, path string) (entry, error)
	// list gives the entries of a directory in byte order of their names.
	list(ctx context.Context, dir string) ([]entry, error)
	// check reports the first of the files that could not be read.
	check(ctx context.Context, files []entry) error
	openRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error)
	openAt(ctx context.Context, path string, f File) (ReaderAtCloser, error)
	create(ctx context.Context, path string) (Writer, error)
}

// entry is a file or directory as a fileSystem sees it.
type entry struct {
	path    string
	size    int64
	dir     bool
	modTime time.Time
	fault   error // why it cannot be read, in a list of a directory; an error for who means it
}

// New returns Sources, which connect to a cluster only when they need it.
func New(opts Options) *Sources {
	s := &Sources{opts: opts, log: opts.Logger}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.mu.clusters = make(map[string]*cluster)
	return s
}

// Close ends all connections. Readers and writers must have been closed.
func (s *Sources) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for authority, c := range s.mu.clusters {
		c.close()
		delete(s.mu.clusters, authority)
	}
	return nil
}

// fileScheme is the scheme of local files, which paths without a scheme are, too.
const fileScheme = "file"

// splitURI returns the scheme of a URI, as it is written, and what follows it.
func splitURI(uri string) (scheme, rest string) {
	if scheme, rest, ok := strings.Cut(uri, "://"); ok {
		return scheme, rest
	}
	return fileScheme, uri
}

// IsLocal reports whether a URI names local files.
func IsLocal(uri string) bool {
	scheme, _ := splitURI(uri)
	return strings.EqualFold(scheme, fileScheme)
}

// resolve finds the file system of a URI and the path in it.
func (s *Sources) resolve(uri string) (fileSystem, string, error) {
	if uri == "" {
		return nil, "", &Error{Op: "open", URI: `""`, Kind: ErrNotFound, Hint: "the path is empty"}
	}
	scheme, rest := splitURI(uri)
	switch strings.ToLower(scheme) {
	case fileScheme:
		return localFS{}, rest, nil
	case "hdfs":
		authority, path, _ := strings.Cut(rest, "/")
		c, err := s.cluster(authority)
		if err != nil {
			return nil, "", err
		}
		return c, "/" + strings.TrimSuffix(path, "/"), nil
	}
	return nil, "", &Error{Op: "open", URI: uri, Kind: ErrUnsupported,
		Err: fmt.Errorf("unknown scheme %q", scheme), Hint: "write a local path, file:// or hdfs://"}
}

func (s *Sources) cluster(authority string) (*cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, fmt.Errorf("source: Sources is closed")
	}
	if c := s.mu.clusters[authority]; c != nil {
		return c, nil
	}
	c, err := newCluster(authority, &s.opts.HDFS, s.log)
	if err != nil {
		return nil, err
	}
	s.mu.clusters[authority] = c
	return c, nil
}

// OpenRange opens the bytes of f, as stored (still compressed), from offset up
// to the file's listed size. Read retries transient faults by itself; it fails
// with a *CorruptError or an *Error. Many readers may be open at once.
func (s *Sources) OpenRange(ctx context.Context, f File, offset int64) (io.ReadCloser, error) {
	if offset < 0 || offset > f.Size {
		return nil, fmt.Errorf("open %s: offset %d is outside its %d bytes", f.URI, offset, f.Size)
	}
	fs, path, err := s.resolve(f.URI)
	if err != nil {
		return nil, err
	}
	r, err := fs.openRange(ctx, path, f, offset)
	if err != nil {
		return nil, vanished(f, err)
	}
	return r, nil
}

// OpenAt opens f, as stored, for reads at any offset.
func (s *Sources) OpenAt(ctx context.Context, f File) (ReaderAtCloser, error) {
	fs, path, err := s.resolve(f.URI)
	if err != nil {
		return nil, err
	}
	r, err := fs.openAt(ctx, path, f)
	if err != nil {
		return nil, vanished(f, err)
	}
	return r, nil
}

// Create writes a file, replacing one of that name when the Writer is closed.
// Missing parent directories are made.
func (s *Sources) Create(ctx context.Context, uri string) (Writer, error) {
	fs, path, err := s.resolve(uri)
	if err != nil {
		return nil, err
	}
	return fs.create(ctx, path)
}
