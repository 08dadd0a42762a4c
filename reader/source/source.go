package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop"
)

// Options configures Sources. The zero value works for local files and for an
// HDFS without Kerberos.
type Options struct {
	HDFS   HDFSOptions
	Logger *slog.Logger // for retries and replaced replicas; default: slog.Default()
}

// File is one input file, as listed. A caller that makes a File sets at least URI and
// Size.
type File struct {
	URI         string      `json:"uri"`  // local path, or hdfs://authority/path
	Size        int64       `json:"size"` // bytes, as stored
	Compression Compression `json:"compression"`
	ModTime     time.Time   `json:"mod_time,omitzero"` // zero: unknown, not checked
}

func (f File) asListed() fsys.File { return fsys.File{URI: f.URI, Size: f.Size, ModTime: f.ModTime} }

// Sources reads and writes local files and files in HDFS. It owns the HDFS clients;
// Close ends them.
type Sources struct {
	opts Options
	log  *slog.Logger

	mu struct {
		sync.Mutex
		clusters map[string]*hadoop.Cluster // by authority
		closed   bool
	}
}

// New returns Sources, which connect to a cluster only when they need it.
func New(opts Options) *Sources {
	s := &Sources{opts: opts, log: opts.Logger}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.mu.clusters = make(map[string]*hadoop.Cluster)
	return s
}

// Close ends all connections. Readers and writers must have been closed.
func (s *Sources) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for authority, c := range s.mu.clusters {
		c.Close()
		delete(s.mu.clusters, authority)
	}
	return nil
}

// fileScheme is the scheme of local files, which paths without a scheme are, too.
const fileScheme = "file"

// splitURI returns the scheme of a URI, as it is written, and what follows it. The host of a local
// file may be named (RFC 8089): file://localhost/data is file:///data.
func splitURI(uri string) (scheme, rest string) {
	if scheme, rest, ok := strings.Cut(uri, "://"); ok {
		const host = "localhost"
		if strings.EqualFold(scheme, fileScheme) && len(rest) > len(host) && strings.EqualFold(rest[:len(host)], host) && rest[len(host)] == '/' {
			rest = rest[len(host):]
		}
		return scheme, rest
	}
	return fileScheme, uri
}

// IsLocal reports whether a URI names local files.
func IsLocal(uri string) bool {
	scheme, _ := splitURI(uri)
	return strings.EqualFold(scheme, fileScheme)
}

// Path is the path of local files that a URI names; that of others is the URI.
func Path(uri string) string {
	if scheme, rest := splitURI(uri); strings.EqualFold(scheme, fileScheme) {
		return rest
	}
	return uri
}

// resolve finds the file system of a URI and the path in it.
func (s *Sources) resolve(uri string) (fsys.FileSystem, string, error) {
	if uri == "" {
		return nil, "", &Error{Op: "open", URI: `""`, Kind: ErrNotFound, Hint: "the path is empty"}
	}
	for _, scheme := range []string{fileScheme, "hdfs"} {
		if name, path, _ := strings.Cut(uri, ":/"); strings.EqualFold(name, scheme) && !strings.HasPrefix(path, "/") {
			return nil, "", &Error{Op: "open", URI: uri, Kind: ErrUnsupported, Err: errors.New("a URI has two slashes before its host"),
				Hint: fmt.Sprintf("write %s:///%s", scheme, path)}
		}
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

func (s *Sources) cluster(authority string) (*hadoop.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, fmt.Errorf("source: Sources is closed")
	}
	if c := s.mu.clusters[authority]; c != nil {
		return c, nil
	}
	c, err := hadoop.New(authority, &s.opts.HDFS, s.log)
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
	r, err := fs.OpenRange(ctx, path, f.asListed(), offset)
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
	r, err := fs.OpenAt(ctx, path, f.asListed())
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
	return fs.Create(ctx, path)
}
