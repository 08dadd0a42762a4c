package catalog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/panics"
)

const (
	// FixedBytes is the most memory that an open catalog takes, without the lists that MemoryBytes
	// adds: Pebble's caches, its empty memtable, and the blocks of tables that are being written
	// and compacted. TestMemory checks it. An idle catalog takes 0.4 MiB, so closing the database
	// between commits would gain little.
	FixedBytes = 1792 << 10

	// Pages are read in one sweep, and nothing goes through the memtable.
	cacheBytes    = 64 << 10
	memTableBytes = 64 << 10
	// blockBytes is the size of a block of a sorted table. A block has some pages of the index.
	blockBytes = 16 << 10
	// A table is written in one pass over the pages and read in one; many files would only cost
	// opens.
	targetFileBytes = 64 << 20
	// Every commit and drop adds some 80 bytes to Pebble's manifest, and each Update of the
	// catalog's copies writes all of it (package catalogcopy). A manifest of this size is succeeded
	// by a new one.
	manifestBytes = 32 << 10
)

// pebbleOptions returns the options of a database into which tables are only ingested.
func pebbleOptions(fs vfs.FS, readOnly bool, log *logger) *pebble.Options {
	o := &pebble.Options{
		FS:                          pebbleFS{fs, log, readOnly},
		ReadOnly:                    readOnly,
		Logger:                      log,
		CacheSize:                   cacheBytes,
		MemTableSize:                memTableBytes,
		DisableWAL:                  true,
		DisableAutomaticCompactions: true,
		DisableTableStats:           true,
		MaxOpenFiles:                64,
		MaxManifestFileSize:         manifestBytes,
		FormatMajorVersion:          pebble.FormatColumnarBlocks,
		EventListener: &pebble.EventListener{
			BackgroundError: log.backgroundError,
			DataCorruption:  log.dataCorruption, // otherwise Pebble calls Fatalf
		},
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = targetFileBytes
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		o.Levels[i].IndexBlockSize = blockBytes
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionNone // hashed locations and filters do not compress
	})
	o.EnsureDefaults()
	return o
}

// logger logs Pebble's messages. After Fatalf, dead is closed and err is set.
type logger struct {
	dir  string // the catalog's
	to   *slog.Logger
	once sync.Once
	dead chan struct{}
	err  error

	mu   sync.Mutex
	lock io.Closer // of the directory, while the database is open
}

// heldLock is the lock that a database holds.
type heldLock struct{ *logger }

// Close releases the lock, unless it is already released.
func (h heldLock) Close() error { return h.release() }

// hold records the lock that a database has taken.
func (l *logger) hold(lock io.Closer) io.Closer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = lock
	return heldLock{l}
}

// release releases the lock for a database that will never do so. The database's goroutines are
// blocked, except the one that deletes files, see pebbleFS.Remove.
func (l *logger) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.lock
	l.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// failed returns the error with which the database failed for good, or nil.
func (l *logger) failed() error {
	select {
	case <-l.dead:
		return l.err
	default:
		return nil
	}
}

func newLogger(dir string, to *slog.Logger) *logger {
	return &logger{dir: dir, to: to, dead: make(chan struct{})}
}

func (l *logger) Infof(format string, args ...any) {
	if l.to.Enabled(context.Background(), slog.LevelDebug) {
		l.to.Debug("catalog: " + fmt.Sprintf(format, args...))
	}
}

func (l *logger) Errorf(format string, args ...any) {
	l.to.Warn("catalog: " + fmt.Sprintf(format, args...))
}

func (l *logger) backgroundError(err error) {
	l.to.Warn("catalog: Pebble reports an error in the background", "error", err)
}

// dataCorruption only logs the damage, because the reader also gets the error.
func (l *logger) dataCorruption(info pebble.DataCorruptionInfo) {
	l.to.Error("catalog: a file is damaged", "path", info.Path)
}

// Fatalf blocks its goroutine forever, see the package documentation.
func (l *logger) Fatalf(format string, args ...any) {
	l.once.Do(func() {
		l.err = &failure{fmt.Sprintf("%v: %s: "+format, append([]any{ErrFailed, l.dir}, args...)...), causeIn(args)}
		l.to.Error(l.err.Error())
		close(l.dead)
	})
	select {}
}

// causeIn is the error among the arguments of a message.
func causeIn(args []any) error {
	for _, a := range args {
		if err, ok := a.(error); ok {
			return err
		}
	}
	return nil
}

// failure is an ErrFailed with its cause.
type failure struct {
	text  string
	cause error // nil: unknown
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{ErrFailed}
	}
	return []error{ErrFailed, f.cause}
}

// do runs f, which uses the database, and returns its error. If the database fails for
// good, f never returns, and do returns the error of that failure.
func (l *logger) do(f func() error) error {
	if err := l.failed(); err != nil {
		return err
	}
	done := make(chan error, 1)
	panics.Go("the catalog of the table", func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-l.dead:
		return l.err
	}
}
