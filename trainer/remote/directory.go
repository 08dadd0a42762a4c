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

// Store is the storage of a remote directory, such as a *source.Directory.
type Store interface {
	List(ctx context.Context, dir string) ([]source.Entry, error)
	Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error)
	Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error
}

// Options say how a remote directory is used.
type Options struct {
	// BytesPerSecond limits uploads or downloads; 0 means no limit.
	BytesPerSecond int64
	Logger         *slog.Logger // nil: slog.Default()
	// Progress, if not nil, is called now and then with the number of bytes moved so far and in
	// all. Several goroutines call it.
	Progress func(done, total int64)
	// Optional, if not nil, says which files a model can do without. Fetch drops such files if they
	// are damaged.
	Optional func(name string) bool

	// abandonedAfter is how old the leftovers of another model directory's publication must be
	// before they are deleted. If its process is alive nevertheless, it begins again.
	abandonedAfter time.Duration
	cleanWithin    time.Duration // how long a completed publication may spend on deleting old files
	partBytes      int64
}

const (
	defaultAbandonedAfter = 7 * 24 * time.Hour
	// defaultCleanWithin is far longer than deleting takes. But if a file cannot be read at
	// present, a store may try for hours, and a caller whose model is published should not wait for
	// that.
	defaultCleanWithin = 2 * time.Minute
	// defaultPartBytes is the most that is uploaded or fetched again after an interruption: two
	// blocks of HDFS.
	defaultPartBytes = 256 << 20
	// parallel is how many objects are moved at the same time.
	parallel = 4
)

// Directory is a remote directory. It is safe for concurrent use, by any number of processes.
type Directory struct {
	uri   string
	store Store
	opts  Options
	log   *slog.Logger
	limit *limiter
}

// Open returns the remote directory in a store, which may be empty. uri is its name in messages.
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

// IsLocal reports whether a path in the local file system is a remote directory.
func IsLocal(dir string) bool {
	for _, name := range []string{objectsDir, pendingDir} { // Publish makes both, and no model directory has them
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// Begun reports whether generations were ever published to the directory, or were about to be. It
// looks for a subdirectory that only people remove.
func (d *Directory) Begun(ctx context.Context) (bool, error) {
	return d.hasDir(ctx, generationsDir)
}

func (d *Directory) hasDir(ctx context.Context, name string) (bool, error) {
	all, err := d.store.List(ctx, "")
	if err != nil {
		return false, fmt.Errorf("the remote directory %s: %w", d.uri, err)
	}
	return slices.ContainsFunc(all, func(e source.Entry) bool { return e.IsDir && e.Name == name }), nil
}

// errAway says that a subdirectory is gone that no process removes.
var errAway = errkind.New(errkind.IO, "it is gone, although aibox never deletes it")

// checkThere fails with errAway if a subdirectory is gone that was in use. Then the file system of
// the directory is probably no longer mounted, and a file that is missing is not known to be lost.
func (d *Directory) checkThere(ctx context.Context, name string) error {
	there, err := d.hasDir(ctx, name)
	if err == nil && !there {
		err = fmt.Errorf("%s/%s: %w: mount the file system of the remote directory; if somebody has deleted the subdirectory, make it again, empty", d.uri, name, errAway)
	}
	return err
}

// Foreign returns the name of a file or directory in d that does not belong in a remote directory,
// "" if there is none. Hidden files, and what file systems and Hadoop keep in directories, do not
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

// Begin returns the path of the subdirectory that Begun looks for, in the remote directory dir of
// the local file system.
func Begin(dir string) string { return filepath.Join(dir, generationsDir) }

// URI returns the name of the directory.
func (d *Directory) URI() string { return d.uri }

// ErrNone says that a remote directory has no generation, or not the requested one.
var ErrNone = errkind.New(errkind.IO, "no model there")

// DamagedError says that a file of a remote directory is missing, or differs from what was
// published.
type DamagedError struct {
	URI    string // of the file
	Reason string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.URI, e.Reason) }

// ErrorKind sorts the error for exit codes and reports.
func (*DamagedError) ErrorKind() errkind.Kind { return errkind.IO }

// OwnBytes returns for each generation how many bytes it has in objects that none of the others
// has, and the number of bytes of all objects together.
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

// Generations returns the manifests of the generations, the newest first, and the faults of those
// that cannot be read.
func (d *Directory) Generations(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Generation)
}

// Snapshots does for snapshots what Generations does.
func (d *Directory) Snapshots(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Snapshot)
}

// PrioritySaves does for priority saves what Generations does.
func (d *Directory) PrioritySaves(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, PrioritySave)
}

// All returns the results of Generations, Snapshots and PrioritySaves, in that order.
func (d *Directory) All(ctx context.Context) (all []*Manifest, faults []error, err error) {
	return d.list(ctx, Generation, Snapshot, PrioritySave)
}

// list returns the manifests of the given kinds, one kind after the other.
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
