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
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssd is the table of KindSSD.
//
// Its locks, and the order in which they are taken, are in the package's
// documentation.
//
// A row that is not in the cache is, as it was last trained, in the bucket of
// its slot: it leaves only clean, under moving, and counts as clean only once
// the index points to a bucket that has it: it is marked so when it is copied,
// and until the index is set moving is not given back. And only who holds
// changing inserts rows. So a Pull that looks for a key in the cache first, and
// in the index afterwards, gets a location whose bucket has the row. That the
// bucket is superseded before it has been read does no harm: what supersedes it
// has the same version of all rows that were not in the cache. Its file stays, as
// the request that pins it is submitted under indexMu, before the location can be
// replaced and then released.
type ssd struct {
	layout   Layout
	unit     int // bytes that buckets take a whole number of
	init     func(key uint64, row []float32)
	opts     Options
	plan     ssdPlan
	bulk     bulkPlan
	readOnly bool
	log      *slog.Logger

	devices []blockio.Device
	own     bool // devices are closed with the table
	pool    *blockio.Pool
	// deltaPool has the blocks of snapshots.
	deltaPool *blockio.Pool
	files     *bucketfile.Set
	catalog   *catalog.Catalog
	cache     *rowcache.Cache
	tableID   uint64

	announcing announcing

	changing chan struct{}
	saving   chan struct{}

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
		sweep    sweep
	}
	// fitRows is how many rows the cache holds within its present budget,
	// mayCreate how many may come before somebody looks at the slots, see admit.
	fitRows   atomic.Int64
	mayCreate atomic.Int64

	indexMu sync.RWMutex
	index   *slots.Index

	// borrowed is memory that an Import or a Scan has taken from the cache.
	borrowed atomic.Int64

	// written is what went to SSD beside buckets and the catalog, in bytes, since
	// the table was opened.
	written struct{ deltas, spools atomic.Int64 }

	// unpaid is how many bytes of buckets were written since space was last
	// looked at, see keepSpace.
	unpaid atomic.Int64

	carried  carried
	elevator elevator // under changing
	// cleanPause is how many times clean rows are not to be looked for.
	cleanPause atomic.Int32

	// outside is what a table that is opened for reading only has of rows that are
	// in no bucket, or in an older version; nil: nothing.
	outside *outside

	snap      atomic.Pointer[snapshotDelta] // collects rows of a snapshot, or nil
	snapBytes atomic.Int64                  // of its blocks beyond those of the pool

	// born are the counters of the snapshot that was opened, see lifeCounters.
	born map[string]int64

	mu struct {
		sync.Mutex
		users     int
		idle      sync.Cond
		closed    bool
		live      []*WorkingSet
		refs      refPool
		released  [][]uint32 // of sets that markReleased has not seen; counted in refs
		stats     Stats
		announced []*announcement
		failed    error // of the background
	}

	kick    chan struct{}
	ahead   chan struct{} // wakes the prefetcher
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// enter marks a method as at work, so that Close waits for it.
func (t *ssd) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return ErrClosed
	}
	t.mu.users++
	return nil
}

func (t *ssd) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.users--
	if t.mu.users == 0 {
		t.mu.idle.Broadcast()
	}
}

// failure returns what went wrong in the background since the last call.
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
	if t.mu.closed {
		t.mu.Unlock()
		return nil
	}
	if n := len(t.mu.live); n > 0 {
		t.mu.Unlock()
		return fmt.Errorf("%w: %d at Close", ErrPinned, n)
	}
	t.mu.closed = true
	for t.mu.users > 0 {
		t.mu.idle.Wait()
	}
	failed := t.mu.failed
	t.mu.refs, t.mu.released = refPool{}, nil
	t.mu.Unlock()
	if t.stop != nil {
		t.stop()
		t.stopped.Wait()
	}
	t.mu.Lock()
	if failed == nil {
		failed = t.mu.failed
	}
	t.mu.Unlock()
	return errors.Join(failed, t.free())
}

// free gives back everything, as far as it was made.
func (t *ssd) free() error {
	var errs []error
	t.dropAnnounced()
	t.stopElevator()
	errs = append(errs, t.freeCarries())
	if t.files != nil {
		errs = append(errs, t.files.Close())
	}
	errs = append(errs, t.outside.close())
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
		t.deltaPool.Close()
	}
	if t.own {
		for _, d := range t.devices {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// fullDisk makes an error of the system about a full file system, met in a
// directory, one that says so and how much is left there. What a catalog did that
// failed half-way may have happened: that is none.
func fullDisk(err error, d blockio.Device) error {
	if !blockio.IsFull(err) || errors.Is(err, bucketfile.ErrNoSpace) || errors.Is(err, ErrNoSpace) || errors.Is(err, catalog.ErrFailed) {
		return err
	}
	return fmt.Errorf("%w in %s: %w", ErrNoSpace, blockio.Left(d), err)
}

// tableError gives errors of the parts the types that callers know.
func tableError(err error) error {
	var bucket *bucketfile.CorruptionError
	var cat *catalog.CorruptionError
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
