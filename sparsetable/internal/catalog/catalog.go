package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/diskfault"
	"aibox/internal/errkind"
)

// Options say which catalog to open.
type Options struct {
	Dir string // used by nothing else; Open makes it
	// Format is the required format of the table. Zero fields accept any value (StateDim does if
	// ValueDim is zero). A new table needs all fields except Version.
	Format    Format
	MustExist bool         // ErrNotExist instead of a new table
	ReadOnly  bool         // changes nothing; implies MustExist
	FS        vfs.FS       // nil: the system's
	Logger    *slog.Logger // nil: none
}

// Catalog is an open catalog.
type Catalog struct {
	dir      string
	fs       vfs.FS
	format   Format
	readOnly bool
	log      *logger
	opts     *pebble.Options
	memory   atomic.Int64 // bytes of what mu guards
	written  atomic.Int64 // bytes, see countingFS

	mu struct {
		sync.Mutex
		db        *pebble.DB
		closed    bool
		snapshots []*kept       // ascending by id
		lastID    uint64        // highest ID ever assigned, in the database or to a Commit
		pinned    []*kept       // snapshots pinned by Pin, dropped or not; one entry per pin
		live      *kept         // the snapshot that the open table was loaded from or last wrote, dropped or not
		garbage   []pageVersion // to be deleted by the next sorted table
		commit    *Commit       // under way
	}
}

// pageVersion names one version of a page: the one that a snapshot wrote.
type pageVersion struct {
	page uint32
	id   uint64
}

const tmpSuffix = ".tmp"

// Open opens the catalog in o.Dir, or makes it. It reads the records of the snapshots, not their
// pages. A catalog is open in one process for writing, or in any number of processes for reading.
//
// Its errors include ErrNotExist, *FormatError, *CorruptionError and ErrInUse.
func Open(o Options) (*Catalog, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{dir: o.Dir, readOnly: o.ReadOnly, log: newLogger(o.Dir, o.Logger)}
	if diskfault.On() {
		o.FS = FaultyFS(o.FS)
	}
	o.FS = countingFS{o.FS, &c.written}
	c.fs = o.FS
	c.opts = pebbleOptions(o.FS, o.ReadOnly, c.log)
	c.opts.ErrorIfNotExists = o.MustExist || o.ReadOnly
	c.mu.Lock()
	defer c.unlock()
	h, err := c.readHead()
	if err != nil {
		return nil, err
	}
	// Pebble does not always report a missing database with the same error.
	d, err := pebble.Peek(o.Dir, o.FS)
	exists := err == nil && d.Exists
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
	case !exists && h != nil:
		err = c.corrupt("its database", "there is no database, but there is a file %s", HeadName)
	case !exists && c.opts.ErrorIfNotExists:
		err = fmt.Errorf("%w: %s", ErrNotExist, o.Dir)
	default:
		err = c.log.do(func() error {
			if h != nil && !c.readOnly {
				if err := c.verify(o.Format); err != nil {
					return err
				}
			}
			return c.open(o.Format)
		})
	}
	if err != nil {
		if c.log.failed() != nil {
			err = errors.Join(err, c.log.release())
		}
		return nil, c.wrap(err, "open")
	}
	return c, nil
}

// verify compares the database with HEAD before the database is opened for writing,
// because Pebble then deletes all files that a damaged manifest does not mention.
func (c *Catalog) verify(want Format) error {
	_, _, err := c.openDatabase(pebbleOptions(c.fs, true, c.log), want)
	if c.mu.db != nil {
		err = errors.Join(err, c.mu.db.Close())
	}
	c.mu.db, c.mu.snapshots, c.mu.lastID = nil, nil, 0
	return err
}

// openDatabase opens the database, reads what is always in memory and compares it with HEAD.
// dropped lists the snapshots whose drop was interrupted. After an error the caller must close
// c.mu.db unless it is nil.
func (c *Catalog) openDatabase(o *pebble.Options, want Format) (h *head, dropped []uint64, err error) {
	db, err := pebble.Open(c.dir, o)
	if err != nil {
		return nil, nil, err
	}
	c.mu.db = db
	// Another process may have changed both before the database was locked.
	if h, err = c.readHead(); err != nil {
		return nil, nil, err
	}
	if err := c.readFormat(want, h); err != nil {
		return nil, nil, err
	}
	if err := c.readSnapshots(); err != nil {
		return nil, nil, err
	}
	dropped, err = c.checkHead(h)
	return h, dropped, err
}

func (c *Catalog) open(want Format) (err error) {
	defer func() {
		if err != nil && c.mu.db != nil {
			err = errors.Join(err, c.mu.db.Close())
		}
	}()
	h, dropped, err := c.openDatabase(c.opts, want)
	if err != nil {
		return err
	}
	if err := c.completeDrops(dropped); err != nil || c.readOnly {
		return err
	}
	if now := c.headLocked(); h == nil || now.last != h.last || !slices.Equal(now.ids, h.ids) {
		if err := c.writeHeadLocked(); err != nil {
			return err
		}
	}
	if len(c.mu.snapshots) == 0 { // otherwise Load collects the garbage
		if c.mu.garbage, err = c.sweep(nil, nil); err != nil {
			return err
		}
	}
	return c.removeTemporary()
}

// readFormat reads the table's format and checks it, or makes the table.
func (c *Catalog) readFormat(want Format, h *head) error {
	b, err := c.get([]byte{'a'})
	if errors.Is(err, pebble.ErrNotFound) {
		if h != nil {
			return c.corrupt("its database", "it is empty, but there is a file %s", HeadName)
		}
		if c.opts.ErrorIfNotExists {
			return ErrNotExist // the process crashed while making the catalog
		}
		return c.create(want)
	}
	if err != nil {
		return err
	}
	if c.format, err = decodeFormat(b); err == nil && c.format.Version > formatVersion {
		err = errkind.Newer(c.format.Version, formatVersion)
	}
	if err != nil {
		return c.corrupt("its format", "%w", err)
	}
	return want.check(c.dir, c.format)
}

func (c *Catalog) create(f Format) error {
	if err := f.validate(); err != nil {
		return err
	}
	f.Version = formatVersion
	b, err := f.encode()
	if err != nil {
		return err
	}
	t, err := c.newTable("format")
	if err != nil {
		return err
	}
	if err := t.set([]byte{'a'}, b); err != nil {
		return errors.Join(err, t.abort())
	}
	c.format = f
	return t.ingest(c.mu.db)
}

func (c *Catalog) readSnapshots() error {
	b, err := c.get([]byte{'z'})
	if err == nil && len(b) == 8 {
		c.mu.lastID = binary.BigEndian.Uint64(b)
	} else if err == nil {
		return c.corrupt("its last id", "%d bytes", len(b))
	} else if !errors.Is(err, pebble.ErrNotFound) {
		return err
	}
	it, err := c.mu.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'s'}, UpperBound: []byte{'s' + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(err, it.Close())
		}
		s, err := c.readSnapshot(it.Key(), value)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		c.mu.snapshots = append(c.mu.snapshots, s)
	}
	return it.Close()
}

func (c *Catalog) readSnapshot(key, value []byte) (*kept, error) {
	if len(key) != 9 {
		return nil, c.corrupt("a snapshot's key", "%x", key)
	}
	id := binary.BigEndian.Uint64(key[1:])
	what := fmt.Sprintf("the record of snapshot %d", id)
	s, err := decodeSnapshot(value)
	if err != nil {
		return nil, c.corrupt(what, "%w", err)
	}
	if s.ID != id || id > c.mu.lastID || len(s.versions) != c.pages(s.Slots) {
		return nil, c.corrupt(what, "it has the id %d and %d slots in %d pages, and the last id is %d", s.ID, s.Slots, len(s.versions), c.mu.lastID)
	}
	return s, nil
}

// removeTemporary deletes unfinished sorted tables that a crash left behind.
func (c *Catalog) removeTemporary() error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == HeadName+tmpSuffix || strings.HasPrefix(name, tablePrefix) && strings.HasSuffix(name, tmpSuffix) {
			if err := c.fs.Remove(c.fs.PathJoin(c.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// get returns a copy of the value of key.
func (c *Catalog) get(key []byte) ([]byte, error) {
	v, closer, err := c.mu.db.Get(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v), closer.Close()
}

// pages is the number of pages of an index of that many slots.
func (c *Catalog) pages(slots uint32) int { return c.format.pages(slots) }

// usableLocked returns an error if the catalog cannot be used.
func (c *Catalog) usableLocked() error {
	if err := c.log.failed(); err != nil {
		return err
	}
	if c.mu.closed {
		return ErrClosed
	}
	return nil
}

// Dir is the catalog's directory.
func (c *Catalog) Dir() string { return c.dir }

// Format returns the format of the table.
func (c *Catalog) Format() Format { return c.format }

// Snapshots lists the kept snapshots, oldest first. The result must not be written to.
func (c *Catalog) Snapshots() []Snapshot {
	c.mu.Lock()
	defer c.unlock()
	var all []Snapshot
	for _, s := range c.mu.snapshots {
		all = append(all, s.Snapshot)
	}
	return all
}

// Snapshot returns the snapshot with the given ID, or the newest one for ID 0. It fails with
// ErrNoSnapshot.
func (c *Catalog) Snapshot(id uint64) (Snapshot, error) {
	c.mu.Lock()
	defer c.unlock()
	s, err := c.findLocked(id)
	if err != nil {
		return Snapshot{}, err
	}
	return s.Snapshot, nil
}

func (c *Catalog) findLocked(id uint64) (*kept, error) {
	if n := len(c.mu.snapshots); id == 0 && n > 0 {
		return c.mu.snapshots[n-1], nil
	}
	for _, s := range c.mu.snapshots {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: %d in %s", ErrNoSnapshot, id, c.dir)
}

// MemoryBytes is the memory that the catalog takes: a fixed amount for Pebble, and 8 bytes per page
// and snapshot. It never waits.
func (c *Catalog) MemoryBytes() int64 { return FixedBytes + c.memory.Load() }

// unlock updates the size of what c.mu guards, and unlocks c.mu.
func (c *Catalog) unlock() {
	n := 16 * int64(cap(c.mu.garbage))
	for _, s := range c.mu.snapshots {
		n += s.bytes()
	}
	if c.mu.live != nil && !slices.Contains(c.mu.snapshots, c.mu.live) {
		n += c.mu.live.bytes()
	}
	for i, s := range c.mu.pinned {
		if s != c.mu.live && !slices.Contains(c.mu.snapshots, s) && !slices.Contains(c.mu.pinned[:i], s) {
			n += s.bytes()
		}
	}
	if w := c.mu.commit; w != nil {
		n += 8*int64(cap(w.versions)) + 16*int64(cap(w.garbage))
	}
	c.memory.Store(n)
	c.mu.Unlock()
}

func (s *kept) bytes() int64 {
	return 8*int64(cap(s.versions)) + int64(len(s.Record)) + 40*int64(len(s.Files)) + 256*int64(len(s.Deltas)) + 256
}

// Close closes the catalog; a commit in progress fails. A second Close does nothing. After
// ErrFailed, Close only releases the lock of the directory.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.unlock()
	if c.log.failed() != nil {
		return c.wrap(c.log.release(), "close")
	}
	if c.mu.closed {
		return nil
	}
	c.mu.closed = true
	var err error
	if c.mu.commit != nil {
		err = c.mu.commit.endLocked()
	}
	return c.wrap(errors.Join(err, c.log.do(c.mu.db.Close)), "close")
}
