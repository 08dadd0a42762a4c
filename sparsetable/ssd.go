package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// Locks, in the order in which they are taken:
//
//	changing   whoever inserts rows: Pull, Import, Expire; and Scan, so that
//	           nobody does
//	saving     a snapshot until it is written; Import and Expire
//	compacting whoever empties a file
//	rewrite    whoever changes buckets and the index, or lets rows leave the
//	           cache: the background writer, a Pull that needs room, Snapshot
//	           for the instant at which it fixes the state
//	mu         the list of pinned sets, counters
//	delta.mu   the file of a snapshot's dirty rows
//	indexMu    the index: read by Pull, written under rewrite as well
//	(the cache's and the bucket files' own)
//
// A row that is not in the cache is, as it was last trained, in the bucket of
// its slot: it leaves only clean, under rewrite, and is clean only once the
// index points to a bucket that has it; between the two rewrite is not given
// back. And only who holds changing inserts rows. So a Pull that looks for a
// key in the cache first, and in the index afterwards, gets a location whose
// bucket has the row. That the bucket is superseded before it has been read does
// no harm: what supersedes it has the same version of all rows that were not in
// the cache. Its file stays, as the request that pins it is submitted under
// indexMu, before the location can be replaced and then released.
type ssd struct {
	layout   Layout
	init     func(key uint64, row []float32)
	opts     Options
	plan     ssdPlan
	readOnly bool
	log      *slog.Logger

	devices []blockio.Device
	own     bool // devices are closed with the table
	pool    *blockio.Pool
	files   *bucketfile.Set
	catalog *catalog.Catalog
	cache   *rowcache.Cache
	tableID uint64

	changing chan struct{}
	saving   chan struct{}

	pull pullState // under changing

	compacting sync.Mutex

	rewrite struct {
		sync.Mutex
		rewriter
		stored   int64 // rows in buckets
		scanning int   // scans under way: no slot is split
	}

	indexMu sync.RWMutex
	index   *slots.Index

	// unpaid is how many bytes of buckets were written since space was last
	// looked at, see keepSpace.
	unpaid atomic.Int64

	snap atomic.Pointer[snapshotDelta] // collects rows of a snapshot, or nil

	mu struct {
		sync.Mutex
		users     int
		idle      sync.Cond
		closed    bool
		live      []*WorkingSet
		refs      refPool
		stats     Stats
		announced []announcement
		failed    error // of the background
	}

	kick    chan struct{}
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
	t.mu.refs = refPool{}
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
	if t.files != nil {
		errs = append(errs, t.files.Close())
	}
	if t.cache != nil {
		errs = append(errs, t.cache.Close())
	}
	if t.index != nil {
		t.indexMu.Lock()
		errs = append(errs, t.index.Close())
		t.indexMu.Unlock()
	}
	if t.catalog != nil {
		errs = append(errs, t.catalog.Close())
	}
	if t.pool != nil {
		t.pool.Close()
	}
	if t.own {
		for _, d := range t.devices {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
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
		return &CorruptionError{File: bucket.File, Offset: bucket.Offset, Reason: fmt.Sprintf("slot %d: %s", bucket.Slot, bucket.Reason)}
	case errors.As(err, &cat):
		return &CorruptionError{File: cat.Dir, Reason: err.Error()}
	case errors.Is(err, catalog.ErrNoSnapshot):
		return fmt.Errorf("%w: %w", ErrNoSnapshot, err)
	}
	return err
}
