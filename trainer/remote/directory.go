package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aibox/internal/errkind"
	"aibox/reader/source"
)

// Store is where a remote directory lies; *source.Directory is one.
type Store interface {
	List(ctx context.Context, dir string) ([]source.Entry, error)
	Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error)
	Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error
}

// Options say how a remote directory is used.
type Options struct {
	// BytesPerSecond limits uploads, or downloads; 0: no limit.
	BytesPerSecond int64
	Logger         *slog.Logger // nil: slog.Default()
	// Progress is called now and then with the bytes that were moved, of those that are
	// to be moved; nil: not at all. It is called by several goroutines.
	Progress func(done, total int64)
	// Optional says which files a model can do without. Fetch drops those that are damaged;
	// nil: there are none.
	Optional func(name string) bool

	// abandonedAfter is how old the leftovers of a publication of another model directory
	// must be before they are deleted. If its process lives all the same, it begins again.
	abandonedAfter time.Duration
	cleanWithin    time.Duration // how long a publication that is done may delete old files
	partBytes      int64
}

const (
	defaultAbandonedAfter = 7 * 24 * time.Hour
	// defaultCleanWithin is far more than deleting takes. But where a file cannot be read at
	// present, a store may try for hours, for which nobody should wait whose model is there.
	defaultCleanWithin = 2 * time.Minute
	// defaultPartBytes is how much is uploaded or fetched again after an interruption, at
	// most: two blocks of HDFS.
	defaultPartBytes = 256 << 20
	// parallel is how many objects are moved at a time.
	parallel = 4
)

// Directory is a remote directory. It is safe for concurrent use, by any number of
// processes.
type Directory struct {
	uri   string
	store Store
	opts  Options
	log   *slog.Logger
	limit *limiter
}

// Open returns the remote directory that lies in a store, which may be empty. uri is its
// name in messages.
func Open(uri string, store Store, o Options) *Directory {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	if o.Optional == nil {
		o.Optional = func(string) bool { return false }
	}
	o.abandonedAfter = cmp.Or(o.abandonedAfter, defaultAbandonedAfter)
	o.cleanWithin = cmp.Or(o.cleanWithin, defaultCleanWithin)
	o.partBytes = cmp.Or(o.partBytes, defaultPartBytes)
	return &Directory{uri: uri, store: store, opts: o, log: o.Logger, limit: newLimiter(o.BytesPerSecond)}
}

// IsLocal reports whether a path of the local file system is a remote directory.
func IsLocal(dir string) bool {
	for _, name := range []string{objectsDir, pendingDir} { // Publish makes both, and no model directory has them
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// Begun reports whether generations were ever published to the directory, or were to be, as far as its
// subdirectories tell, which only hands remove.
func (d *Directory) Begun(ctx context.Context) (bool, error) {
	all, err := d.store.List(ctx, "")
	if err != nil {
		return false, fmt.Errorf("the remote directory %s: %w", d.uri, err)
	}
	return slices.ContainsFunc(all, func(e source.Entry) bool { return e.IsDir && e.Name == generationsDir }), nil
}

// Foreign is the name of a file or directory in the directory that no remote directory has; "":
// there is none. What file systems and Hadoop keep in directories, and what is hidden, does not
// count.
func (d *Directory) Foreign(ctx context.Context) (string, error) {
	all, err := d.store.List(ctx, "")
	if err != nil {
		return "", fmt.Errorf("the remote directory %s: %w", d.uri, err)
	}
	own := append(kindDirs[:], objectsDir, pendingDir, "lost+found")
	for _, e := range all {
		if !strings.HasPrefix(e.Name, ".") && !strings.HasPrefix(e.Name, "_") && !slices.Contains(own, e.Name) {
			return e.Name, nil
		}
	}
	return "", nil
}

// Begin is the path of a subdirectory by which Begun tells, of the remote directory with a path in the
// local file system.
func Begin(dir string) string { return filepath.Join(dir, generationsDir) }

// URI is the name of the directory.
func (d *Directory) URI() string { return d.uri }

// ErrNone says that a remote directory has no generation, or not the one that is wanted.
var ErrNone = errkind.New(errkind.IO, "no model there")

// DamagedError says that a file of a remote directory is missing, or is not what was
// published.
type DamagedError struct {
	URI    string // of the file
	Reason string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.URI, e.Reason) }

// ErrorKind sorts the error for exit codes and reports.
func (*DamagedError) ErrorKind() errkind.Kind { return errkind.IO }

// OwnBytes returns how many bytes each of the generations has in objects that no other one
// of them has, and how many all of them have.
func OwnBytes(all []*Manifest) (own []int64, total int64) {
	users := make(map[string]int)
	for _, m := range all {
		seen := make(map[string]bool)
		m.objects(func(p *Part) {
			if !seen[p.Object] {
				seen[p.Object] = true
				users[p.Object]++
			}
		})
	}
	own = make([]int64, len(all))
	counted := make(map[string]bool)
	for i, m := range all {
		m.objects(func(p *Part) {
			if counted[p.Object] {
				return
			}
			counted[p.Object] = true
			total += p.Bytes
			if users[p.Object] == 1 {
				own[i] += p.Bytes
			}
		})
	}
	return own, total
}

// Generations returns the manifests of the generations, the newest first, and the faults of
// those that cannot be read.
func (d *Directory) Generations(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Generation)
}

// Snapshots returns the manifests of snapshots, as Generations does.
func (d *Directory) Snapshots(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Snapshot)
}

// PrioritySaves returns the manifests of priority saves, as Generations does.
func (d *Directory) PrioritySaves(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, PrioritySave)
}

// All returns what Generations does, then what Snapshots does, and then what PrioritySaves does.
func (d *Directory) All(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Generation, Snapshot, PrioritySave)
}

// list returns the manifests of some kinds, one kind after the other.
func (d *Directory) list(ctx context.Context, of ...Kind) (all []*Manifest, faults []error, err error) {
	h, err := d.scan(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the remote directory %s: %w", d.uri, err)
	}
	for _, kind := range of {
		faults = append(faults, h.faults[kindDirs[kind]]...)
	}
	return h.manifests(of...), faults, nil
}
