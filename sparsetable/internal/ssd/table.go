package ssd

import (
	"errors"
	"fmt"
	"sync/atomic"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/elevator"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/lost"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/restore"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/space"
	"aibox/sparsetable/internal/tabledirs"
)

// Table is a table of KindSSD. Its methods implement sparsetable.Table, and the interfaces there
// that not all tables implement.
//
// The package documentation lists its locks and their order.
//
// The latest version of a row that is not in the cache is in the bucket of its slot. The reason is
// that a row leaves the cache only while it is clean, and only under moving or rewrite. It is
// marked clean when it is copied for a new bucket, and the writer of the bucket holds both locks
// from then on until the index points to the bucket. Besides, only a holder of changing inserts
// rows into the cache. So a Pull that looks for a key first in the cache and then in the index gets
// a location whose bucket has the row. It does no harm if the bucket is superseded before it has
// been read, because the new bucket has the same version of all rows that were not in the cache.
// The file of the superseded bucket is not deleted before the read has ended: the request, which
// holds the file, is submitted under indexMu, before the location can be replaced and then
// released.
//
// Each embedded part has the methods that use only its own fields, and the locks of these fields.
// The methods of Table itself use several parts.
type Table struct {
	// opts are the options, with their defaults.
	opts Options
	dirs *tabledirs.Set
	identity
	storage
	origin
	resident
	indexed
	calls
	budget
	background

	pull     pullState // under changing
	elevator *elevator.Elevator
	sets     pinnedSets
	rewrite  rewriting
}

// calls has what method calls enter and lock.
type calls struct {
	inFlight guard.Calls
	changing guard.Lock
	saving   guard.Lock
	// waitingPulls is how many Pulls wait for changing.
	waitingPulls atomic.Int32
}

// storage is what the table keeps on its devices.
type storage struct {
	pool    *blockio.Pool
	files   *bucketfile.Set
	space   space.Policy // of files
	catalog *catalog.Catalog
	copies  *catalogcopy.Copies // of the catalog
	// checkpoints manages the snapshots.
	checkpoints *checkpoint.Store

	// spooled is the number of bytes of spools written since the table was opened.
	spooled atomic.Int64
	// uncheckedBytes is the number of bytes of buckets, without moved ones, that were written since the
	// space on disk was last checked, see keepSpace.
	uncheckedBytes atomic.Int64
}

// origin is the snapshot that the table was opened with.
type origin struct {
	opened   catalog.Snapshot // the snapshot, or what is left of it
	restored chan struct{}    // closed when no more of its rows come into the cache
	restorer *restore.Restorer
	lost     *lost.Files // its lost files; nil: none
	// outside is the index, in a table opened for reading only, of the rows that are in no bucket,
	// or whose bucket has only an older version; nil: there are none.
	outside *outside.Index
}

// resident has the rows in memory.
type resident struct {
	cache   *rowcache.Cache
	search  cleanSearch
	carried carry.Memory // copies of buckets
}

// Close implements Table.
func (t *Table) Close() error {
	t.sets.Lock()
	n := len(t.sets.live)
	closing := n == 0 && t.inFlight.Close()
	t.sets.Unlock()
	switch {
	case closing:
	case t.inFlight.Closed():
		return nil
	default:
		return fmt.Errorf("%w: %d at Close", contract.ErrPinned, n)
	}
	t.inFlight.Wait()
	t.sets.forget()
	t.stopBackground()
	return errors.Join(t.failure(), t.free())
}

// free releases everything that open has made, even if open failed half-way.
func (t *Table) free() error {
	var errs []error
	if t.elevator != nil {
		t.elevator.Close()
	}
	errs = append(errs, t.carried.Close())
	if t.files != nil {
		errs = append(errs, t.files.Close())
	}
	errs = append(errs, t.outside.Close())
	if t.cache != nil {
		errs = append(errs, t.cache.Close())
	}
	errs = append(errs, t.closeIndex())
	if t.checkpoints != nil {
		t.checkpoints.Close()
	}
	if t.catalog != nil {
		errs = append(errs, apierr.Of(t.catalog.Close()))
	}
	if t.pool != nil {
		t.pool.Close()
	}
	return errors.Join(append(errs, t.dirs.CloseDevices())...)
}
