package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"

	"aibox/sparsetable/internal/offheap"
)

// memory is the table of KindMemory.
type memory struct {
	layout   Layout
	init     func(key uint64, row []float32)
	budget   int64 // 0: none
	readOnly bool
	dir      snapshotDir
	lock     io.Closer // of the directory; nil: there is none
	log      *slog.Logger

	// changing is a lock, held by calls that may create or drop rows: Pull, Import,
	// Expire. It is a channel with room for one element, so that waiting for it can
	// end with ctx.
	changing chan struct{}
	// saving is a lock of the same kind, held by a snapshot until it is written,
	// and by Import and Expire. It is taken after changing.
	saving chan struct{}

	// mu guards everything below. It is never held during I/O.
	mu struct {
		sync.Mutex
		users   int       // methods that are running
		idle    sync.Cond // users became 0
		closed  bool
		arena   offheap.Arena
		slabs   *slabs
		index   index
		live    []*WorkingSet // pinned
		refs    refPool
		snap    *capture // the snapshot being written, or nil
		nextID  uint64   // of the next snapshot
		stats   Stats    // counters; the method Stats fills in the sizes
		highest int64    // the most rows that there ever were: the index does not shrink
	}
}

// refPool recycles the references of released working sets.
type refPool struct {
	idle [][]uint32
	held int64 // bytes of the idle references and of those in use
}

// maxIdleRefs is enough for a working set that is pulled ahead, one that is trained
// and one that was released.
const maxIdleRefs = 3

// fixedBytes is what a table takes before its first row: the index's scratch space
// and, where snapshots are possible, minSortRows entries to sort and one block
// buffer.
func (t *memory) fixedBytes() int64 {
	n := int64(8 * segmentSlots)
	if t.dir.path != "" {
		n += minSortRows*sortEntryBytes + int64(blockBytes(t.layout))
	}
	return n
}

// bytesLocked is the memory that the table would take with that many slabs and
// segments.
func (t *memory) bytesLocked(slabs, segments int64) int64 {
	n := t.fixedBytes() + slabs*t.mu.slabs.slabBytes() + segments*segmentBytes + t.mu.refs.held
	if t.dir.path != "" {
		n += slabs << t.mu.slabs.shift // one byte a row: a snapshot sorts a 16th of the rows at a time, with 16 bytes for each
	}
	if s := t.mu.snap; s != nil {
		n += s.savedBytes()
	}
	return n
}

// presentLocked is the memory that the table takes now.
func (t *memory) presentLocked() int64 {
	return t.bytesLocked(int64(len(t.mu.slabs.rows)), int64(len(t.mu.index.segs)))
}

// growLocked makes room for n more rows, or returns ErrBudget and changes
// nothing.
func (t *memory) growLocked(n int64, what string) error {
	s := t.mu.slabs
	highest := max(t.mu.highest, s.used+n)
	segments := max(segmentsFor(highest), int64(len(t.mu.index.segs)))
	need := t.bytesLocked(s.slabsFor(n), segments)
	if t.budget > 0 && need > t.budget {
		need -= t.dropIdleLocked()
	}
	if t.budget > 0 && need > t.budget {
		return t.overBudget(what, need)
	}
	if err := s.grow(n); err != nil {
		return err
	}
	t.mu.highest = highest
	return t.mu.index.grow(segments)
}

func (t *memory) overBudget(what string, need int64) error {
	return &BudgetError{What: what, NeedBytes: need, BudgetBytes: t.budget}
}

func (t *memory) dropIdleLocked() (freed int64) {
	for _, r := range t.mu.refs.idle {
		freed += 4 * int64(cap(r))
	}
	t.mu.refs.idle = nil
	t.mu.refs.held -= freed
	return freed
}

// openMemory opens a table. o has its defaults and is valid.
func openMemory(ctx context.Context, o Options) (_ Table, err error) {
	t := &memory{
		layout: o.Layout, init: o.Init, budget: o.MemoryBytes, readOnly: o.ReadOnly,
		dir: snapshotDir{fs: o.FS, path: o.Dir}, log: o.Logger,
		changing: make(chan struct{}, 1), saving: make(chan struct{}, 1),
	}
	t.mu.idle.L = &t.mu.Mutex
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
		if o.Layout != (Layout{}) && o.Layout != src.info.Layout {
			return nil, errors.Join(&LayoutError{Dir: o.Dir, Have: src.info.Layout, Want: o.Layout}, src.f.Close())
		}
		t.layout = src.info.Layout
	}
	if err := t.layout.Validate(); err != nil {
		return nil, err
	}
	t.mu.index = index{seed: rand.Uint64(), arena: &t.mu.arena}
	t.mu.slabs = newSlabs(t.layout, &t.mu.arena)
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

// unlock gives the directory's lock back.
func (t *memory) unlock() error {
	if t.lock == nil {
		return nil
	}
	return t.lock.Close()
}

// findSnapshot prepares the directory and opens the snapshot that o asks for. It
// returns nil without an error where the table is to start empty.
func (t *memory) findSnapshot(o Options) (*snapshotReader, error) {
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
		return nil, fmt.Errorf("%w: none in %s", ErrNoSnapshot, o.Dir)
	}
	return nil, nil
}

// load fills the table from src. REQUIRES: no other goroutine uses t yet.
func (t *memory) load(ctx context.Context, src *snapshotReader) error {
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

// enter notes that a method is running, so that Close waits for it. leave ends
// that.
func (t *memory) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return ErrClosed
	}
	t.mu.users++
	return nil
}

func (t *memory) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.users--
	if t.mu.users == 0 {
		t.mu.idle.Broadcast()
	}
}

// hold enters a table and takes its locks, in order. release gives everything
// back; after an error nothing is held.
func hold(ctx context.Context, enter func() error, leave func(), locks ...chan struct{}) (release func(), err error) {
	if err := enter(); err != nil {
		return nil, err
	}
	held := 0
	release = func() {
		for i := held - 1; i >= 0; i-- {
			<-locks[i]
		}
		leave()
	}
	for _, l := range locks {
		if err := acquire(ctx, l); err != nil {
			release()
			return nil, err
		}
		held++
	}
	return release, nil
}

// acquire takes one of the table's locks that are channels, or fails when ctx ends.
func acquire(ctx context.Context, lock chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Layout implements Table.
func (t *memory) Layout() Layout { return t.layout }

// Announce implements Table; rows in memory need no lookahead.
func (t *memory) Announce([]uint64) {}

// ForgetAnnounced implements Table.
func (t *memory) ForgetAnnounced() {}

// Lookahead implements Table.
func (t *memory) Lookahead(int) int { return 0 }

// Stats implements Table.
func (t *memory) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.mu.stats
	st.Kind, st.BudgetBytes = KindMemory, t.budget
	if t.mu.closed {
		return st
	}
	st.Rows = t.mu.slabs.used
	st.PinnedSets = int64(len(t.mu.live))
	st.MemoryBytes = t.presentLocked()
	return st
}

// Close implements Table.
func (t *memory) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil
	}
	if n := len(t.mu.live); n > 0 {
		return fmt.Errorf("%w: %d at Close", ErrPinned, n)
	}
	t.mu.closed = true // no new users
	for t.mu.users > 0 {
		t.mu.idle.Wait() // among them the writer of a snapshot
	}
	t.mu.refs, t.mu.live = refPool{}, nil
	t.mu.slabs, t.mu.index = nil, index{}
	return errors.Join(t.mu.arena.Release(), t.unlock())
}
