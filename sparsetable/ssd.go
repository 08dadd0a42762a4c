package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/refpool"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/spool"
)

// ssd is the table of KindSSD.
//
// Its locks, and the order in which they are taken, are in the package's
// documentation.
//
// The latest version of a row that is not in the cache is in the bucket of its
// slot. The reason is that a row leaves the cache only while it is clean, and only
// under moving or rewrite. It is marked clean when it is copied for a new bucket,
// and the writer of the bucket holds both from then on until the index points to
// the bucket. Besides, only a holder of changing inserts rows into the cache. So a
// Pull that looks for a key in the cache first, and in the index afterwards, gets a
// location whose bucket has the row. It does no harm if the bucket is superseded
// before it has been read, because the new bucket has the same version of all rows
// that were not in the cache. The file of the superseded bucket is not deleted
// before the read has ended: the request, which holds the file, is submitted under
// indexMu, before the location can be replaced and then released.
type ssd struct {
	layout   Layout
	unit     int // size of a unit in bytes: a bucket takes a whole number of units
	init     func(key uint64, row []float32)
	opts     Options
	plan     plan.Plan
	bulk     bulkPlan
	readOnly bool
	log      *slog.Logger

	devices []blockio.Device
	own     bool // devices are closed with the table
	pool    *blockio.Pool
	files   *bucketfile.Set
	catalog *catalog.Catalog
	copies  *catalogcopy.Copies // of the catalog
	cache   *rowcache.Cache
	tableID uint64
	hash    slots.Hasher // of keys
	// checkpoints has the snapshots.
	checkpoints *checkpoint.Store

	announcing announcing

	door     guard.Door
	changing guard.Lock
	saving   guard.Lock

	lost     *lost     // files of the opened snapshot; nil: none
	lostDirs []LostDir // that cannot be used or are empty, with AllowLost

	opened   catalog.Snapshot // the one that the table was opened with, if any
	restored chan struct{}    // closed when no more rows of it come into the cache

	pull         pullState // under changing
	waitingPulls atomic.Int32

	compacting sync.Mutex

	moving sync.Mutex

	rewrite struct {
		sync.Mutex
		rewriter
		stored   int64 // rows in buckets
		scanning int   // scans under way: no slot is split or merged
		merging  bool  // there are too many slots
		// fewFilters says that the log has a warning about missing filters.
		fewFilters bool
		sweep      sweep
		shrinking  shrinking
	}
	// fitRows is how many rows the cache holds within its present budget. mayCreate
	// is how many rows may be created before the number of slots must be checked,
	// see admit.
	fitRows   atomic.Int64
	mayCreate atomic.Int64

	indexMu sync.RWMutex
	index   *slots.Index

	// borrowed is memory that an Import or a Scan has taken from the cache.
	borrowed atomic.Int64

	// spooled counts the bytes of spools that were written to SSD since the table was
	// opened.
	spooled atomic.Int64

	// unpaid is how many bytes of buckets were written, not counting moved ones, since
	// the space on disk was last checked, see keepSpace.
	unpaid atomic.Int64

	carried  carry.Memory
	elevator elevator // under changing
	// windowLimit is how many bytes the window of announced passes may take, under
	// rewrite.
	windowLimit int64
	// cleanPause is how many more times dropClean does not look for clean rows.
	cleanPause atomic.Int32
	// creating says that the last Pull created more rows than it read buckets, so that
	// few of its rows will be written with buckets that it carries, see worthSearch.
	creating atomic.Bool

	// outside is the index, in a table that is opened for reading only, of the rows
	// that are in no bucket or in a bucket as an older version; nil: there are
	// none.
	outside *outside.Index

	mu struct {
		sync.Mutex
		live      []*pinned
		refs      refpool.Pool
		released  [][]uint32 // of sets that markReleased has not seen; counted in refs
		stats     Stats
		announced []*announcement
		failed    error // the first error in the background that no call has returned yet
	}

	kick    chan struct{}
	ahead   chan struct{} // wakes the prefetcher
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// failure returns the first error in the background since the last call of failure.
func (t *ssd) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.mu.failed
	t.mu.failed = nil
	return err
}

// Layout implements Table.
func (t *ssd) Layout() Layout { return t.layout }

// Close implements Table.
func (t *ssd) Close() error {
	t.mu.Lock()
	n := len(t.mu.live)
	closing := n == 0 && t.door.Close()
	t.mu.Unlock()
	switch {
	case closing:
	case t.door.Closed():
		return nil
	default:
		return fmt.Errorf("%w: %d at Close", ErrPinned, n)
	}
	t.door.Wait()
	t.mu.Lock()
	t.mu.refs, t.mu.released = refpool.Pool{}, nil
	t.mu.Unlock()
	if t.stop != nil {
		t.stop()
		t.stopped.Wait()
	}
	return errors.Join(t.failure(), t.free())
}

// free gives back everything that open has made, even if it failed half-way.
func (t *ssd) free() error {
	var errs []error
	t.dropAnnounced()
	t.stopElevator()
	errs = append(errs, t.carried.Close())
	if t.files != nil {
		errs = append(errs, t.files.Close())
	}
	errs = append(errs, t.outside.Close())
	if t.cache != nil {
		errs = append(errs, t.cache.Close())
	}
	if t.index != nil {
		t.indexMu.Lock()
		errs = append(errs, t.index.Close())
		t.indexMu.Unlock()
	}
	if t.catalog != nil {
		errs = append(errs, tableError(t.catalog.Close()))
	}
	if t.pool != nil {
		t.pool.Close()
	}
	if t.checkpoints != nil {
		t.checkpoints.Close()
	}
	if t.own {
		for _, d := range t.devices {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// fullDisk wraps an error of the system about a full file system as ErrNoSpace,
// with the directory and the space that is left there. It returns other errors as
// they are, and also those of a catalog that failed half-way, because what was
// asked of that may have happened.
func fullDisk(err error, d blockio.Device) error {
	if !blockio.IsFull(err) || errors.Is(err, bucketfile.ErrNoSpace) || errors.Is(err, ErrNoSpace) || errors.Is(err, catalog.ErrFailed) {
		return err
	}
	return fmt.Errorf("%w in %s: %w", ErrNoSpace, blockio.Left(d), err)
}

// tableError wraps errors of the internal packages in the types that this package
// documents.
func tableError(err error) error {
	var bucket *bucketfile.CorruptionError
	var cat *catalog.CorruptionError
	var delta *deltafile.CorruptionError
	var spooled *spool.CorruptionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*CorruptionError)):
		return err
	case errors.As(err, &bucket):
		return &CorruptionError{
			File: bucket.File, Offset: bucket.Offset, Reason: bucket.Reason,
			Bucket: bucket.Bucket, Slot: bucket.Slot,
		}
	case errors.As(err, &delta):
		return &CorruptionError{File: delta.File, Offset: delta.Offset, Reason: delta.Reason}
	case errors.As(err, &spooled):
		return &CorruptionError{File: spooled.File, Offset: spooled.Offset, Reason: spooled.Reason}
	case errors.As(err, &cat):
		reason := strings.ReplaceAll(cat.Err.Error(), "\n", "; ")
		if cat.What != "" {
			reason = "in " + cat.What + ": " + reason
		}
		return &CorruptionError{File: cat.Dir, Offset: -1, Reason: reason}
	case errors.Is(err, ErrNoSpace), errors.Is(err, ErrFailed):
		return err
	case errors.Is(err, bucketfile.ErrNoSpace):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, catalog.ErrFailed):
		return fmt.Errorf("%w: %w", ErrFailed, err)
	case blockio.IsFull(err):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, catalog.ErrInUse):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	case errors.Is(err, catalog.ErrNoSnapshot):
		return fmt.Errorf("%w: %w", ErrNoSnapshot, err)
	}
	return err
}
