package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/refpool"
)

// Table is a table of KindMemory. Its methods implement sparsetable.Table.
type Table struct {
	layout   layout.Layout
	init     func(key uint64, row []float32)
	budget   int64 // 0: none
	readOnly bool
	dir      snapshotDir
	lock     io.Closer // of the directory; nil: there is none
	log      *slog.Logger

	inFlight guard.Calls
	// changing is held by calls that may create or drop rows: Pull, Import, Expire.
	changing guard.Lock
	// saving is held by a snapshot until it is written, and by Import and Expire. It is
	// taken after changing.
	saving guard.Lock

	// mu guards everything below. It is never held during I/O. Only holders of changing change the
	// index and the places of rows; they read both without mu.
	mu struct {
		sync.Mutex
		arena   offheap.Arena
		slabs   *slabs
		index   index
		room    room
		live    []*pinned
		refs    refpool.Pool
		snap    *capture       // the snapshot being written, or nil
		nextID  uint64         // of the next snapshot
		stats   contract.Stats // counters; the method Stats adds the sizes
		highest int64          // highest number of rows so far, because the index does not shrink
	}
}

// pinned is a working set that is not yet released.
type pinned struct {
	contract.WorkingSet
	refs  []uint32 // nil while its Pull looks them up
	place int      // in live
}

// fixedBytes is the size of a table without rows: the index's scratch space and, if snapshots are
// possible, minSortRows entries to sort and one block buffer.
func (t *Table) fixedBytes() int64 {
	n := int64(8 * segmentSlots)
	if t.dir.path != "" {
		n += minSortRows*sortEntryBytes + int64(blockBytes(t.layout))
	}
	return n
}

// bytesLocked is the memory that the table would take with that many slabs and segments.
func (t *Table) bytesLocked(slabs, segments int64) int64 {
	n := t.fixedBytes() + slabs*t.mu.slabs.slabBytes() + segments*segmentBytes + t.mu.refs.Held
	if t.dir.path != "" {
		n += slabs << t.mu.slabs.shift // one byte a row: a snapshot sorts a 16th of the rows at a time, with 16 bytes for each
	}
	if s := t.mu.snap; s != nil {
		n += s.savedBytes()
	}
	return n
}

// presentLocked is the memory that the table takes now.
func (t *Table) presentLocked() int64 {
	return t.bytesLocked(int64(len(t.mu.slabs.rows)), int64(len(t.mu.index.segs)))
}

// growLocked makes room for n more rows, or returns ErrBudget or ErrMemory and changes nothing.
func (t *Table) growLocked(n int64, what string) error {
	s := t.mu.slabs
	highest := max(t.mu.highest, s.used+n)
	segments := max(segmentsFor(highest), int64(len(t.mu.index.segs)))
	need := t.bytesLocked(s.slabsFor(n), segments)
	if t.budget > 0 && need > t.budget {
		need -= t.mu.refs.Drop()
	}
	if t.budget > 0 && need > t.budget {
		return t.overBudget(what, need)
	}
	if err := t.mu.room.take(max(0, need-t.presentLocked()), what); err != nil {
		return err
	}
	if err := s.grow(n); err != nil {
		return err
	}
	t.mu.highest = highest
	return t.mu.index.grow(segments)
}

func (t *Table) overBudget(what string, need int64) error {
	return &contract.BudgetError{What: what, NeedBytes: need, BudgetBytes: t.budget}
}

// Options say what table to open, see sparsetable.Options. All fields but Init, Layout and the
// numbers must be set.
type Options struct {
	Dir         string
	SnapshotID  uint64
	MustExist   bool
	ReadOnly    bool
	Layout      layout.Layout
	Init        func(key uint64, row []float32)
	MemoryBytes int64 // 0: no limit
	FS          FS
	Logger      *slog.Logger
}

// Open opens a table.
func Open(ctx context.Context, o Options) (_ *Table, err error) {
	t := &Table{
		layout: o.Layout, init: o.Init, budget: o.MemoryBytes, readOnly: o.ReadOnly,
		dir: snapshotDir{fs: o.FS, path: o.Dir}, log: o.Logger,
		changing: guard.NewLock(), saving: guard.NewLock(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.unlock())
		}
	}()
	src, err := t.findSnapshot(o)
	if err != nil {
		return nil, err
	}
	if src != nil {
		if o.Layout != (layout.Layout{}) && o.Layout != src.info.Layout {
			return nil, errors.Join(&layout.Error{Dir: o.Dir, Have: src.info.Layout, Want: o.Layout}, src.f.Close())
		}
		t.layout = src.info.Layout
	}
	if err := t.layout.Validate(); err != nil {
		return nil, err
	}
	t.mu.index = index{seed: rand.Uint64(), arena: &t.mu.arena}
	t.mu.slabs = newSlabs(t.layout, &t.mu.arena)
	t.mu.room = newRoom()
	err = t.growLocked(0, "an empty table") // no other goroutine uses t yet
	if err == nil && src != nil {
		err = t.load(ctx, src)
	}
	if src != nil {
		err = errors.Join(err, src.f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, t.mu.arena.Release())
	}
	return t, nil
}

// unlock releases the directory's lock.
func (t *Table) unlock() error {
	if t.lock == nil {
		return nil
	}
	return t.lock.Close()
}

// findSnapshot prepares the directory and opens the snapshot that o asks for. It returns nil
// without an error if the table starts empty.
func (t *Table) findSnapshot(o Options) (*snapshotReader, error) {
	ids, leftovers, err := t.dir.list()
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly && o.Dir != "" {
		if err := o.FS.MkdirAll(o.Dir); err != nil {
			return nil, fmt.Errorf("sparsetable: make directory: %w", err)
		}
		if on, can := o.FS.(interface {
			Lock(dir string) (io.Closer, error)
		}); can {
			if t.lock, err = on.Lock(o.Dir); err != nil {
				return nil, err
			}
			// With the lock held, no other process makes or drops snapshots.
			if ids, leftovers, err = t.dir.list(); err != nil {
				return nil, err
			}
		}
		if err := t.dir.removeLeftovers(leftovers); err != nil {
			return nil, err
		}
	}
	t.mu.nextID = 1
	if n := len(ids); n > 0 {
		t.mu.nextID = ids[n-1] + 1
	}
	switch {
	case o.SnapshotID != 0:
		return t.dir.open(o.SnapshotID)
	case len(ids) > 0:
		return t.dir.open(ids[len(ids)-1])
	case o.MustExist:
		return nil, fmt.Errorf("%w: none in %s", contract.ErrNoSnapshot, o.Dir)
	}
	return nil, nil
}

// load fills the table from src. REQUIRES: no other goroutine uses t yet.
func (t *Table) load(ctx context.Context, src *snapshotReader) error {
	if err := t.growLocked(src.info.Rows, fmt.Sprintf("loading %d rows", src.info.Rows)); err != nil {
		return err
	}
	for i := int64(0); i < src.info.Rows; i++ {
		if i%pullChunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, row, err := src.Next()
		if err != nil {
			return err
		}
		ref := t.mu.slabs.take(key)
		copy(t.mu.slabs.row(ref), row)
		if err := t.mu.index.insert(key, ref); err != nil {
			return err
		}
	}
	return nil
}

// Layout implements Table.
func (t *Table) Layout() layout.Layout { return t.layout }

// Announce implements Table; rows in memory need no lookahead.
func (t *Table) Announce([]uint64) {}

// ForgetAnnounced implements Table.
func (t *Table) ForgetAnnounced() {}

// Lookahead implements Table.
func (t *Table) Lookahead(int) int { return 0 }

// Stats implements Table.
func (t *Table) Stats() contract.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.mu.stats
	st.Kind, st.BudgetBytes = contract.KindMemory, t.budget
	if t.mu.slabs == nil { // it was closed
		return st
	}
	st.Rows = t.mu.slabs.used
	st.PinnedSets = int64(len(t.mu.live))
	st.MemoryBytes = t.presentLocked()
	return st
}

// Close implements Table.
func (t *Table) Close() error {
	t.mu.Lock()
	n := len(t.mu.live)
	closing := n == 0 && t.inFlight.Close()
	t.mu.Unlock()
	switch {
	case closing:
	case t.inFlight.Closed():
		return nil
	default:
		return fmt.Errorf("%w: %d at Close", contract.ErrPinned, n)
	}
	t.inFlight.Wait() // also for the writer of a snapshot
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.refs, t.mu.live = refpool.Pool{}, nil
	t.mu.slabs, t.mu.index = nil, index{}
	return errors.Join(t.mu.arena.Release(), t.unlock())
}
