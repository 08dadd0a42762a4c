package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
)

// Dump collects the rows of a snapshot while it is being written. A row that is dirty and old
// (rowcache.Old) is yet to be saved, unless it has Saved and the snapshot inherits the file that
// has it. Code that is about to change such a row, write it to a bucket, or drop it from the cache,
// saves it first.
type Dump struct {
	c       *Store
	id      uint64
	buffers *deltafile.Buffers
	parts   []*dumpPart // one for each directory
	domains *domains    // determine the part of each row; set when the snapshot is fixed
	// inherits says that rows with Saved are in files of earlier snapshots; saved is how many of
	// these rows have not been visited yet.
	inherits bool
	saved    int64
	training bool // the snapshot was fixed during training, see saveClean

	mu     sync.Mutex
	closed bool
	kind   deltafile.Kind
	counts dumpCounts
}

// dumpPart is the file of a dump in one of the table's directories.
type dumpPart struct {
	dir    int
	name   string
	file   blockio.File
	writer *deltafile.Writer
	// reserved is the number of bytes charged to the directory for the file. No lock guards it,
	// because only one goroutine at a time works on a snapshot.
	reserved int64
	cap      int64 // maximum number of clean rows

	// Under Dump.mu:
	block      []byte // being filled; nil: none
	used, rows int    // in block
	next       uint32
	bytes      int64 // passed to the writer
	dirtyBytes int64
	count      [2]int64 // of rows, by deltafile.Kind
}

type dumpCounts struct {
	dirtyRows int64
	fresh     int64 // dirty rows that are in no bucket, including those in inherited files
	early     int64 // dirty rows that visit saved because they were about to change or leave the cache
}

// unsaved are the flags of rows that a running snapshot has yet to save. As long as a row has both,
// its words and its flag Stored are as they were when the snapshot was fixed.
const unsaved = rowcache.Dirty | rowcache.Old

// rowsAtOnce is the number of rows handled per acquisition of the mutexes of the dump and the
// cache.
const rowsAtOnce = 1024

// newDump makes a file in each directory, with extra blocks beyond those of the pool. The names are
// not durable before finish.
func (c *Store) newDump(id uint64, extra int) (d *Dump, err error) {
	d = &Dump{c: c, id: id}
	if d.buffers, err = c.Deltas.NewBuffers(len(c.Deltas.Devices), extra); err != nil {
		return nil, err
	}
	for dir, dev := range c.Deltas.Devices {
		p := &dumpPart{dir: dir, name: deltafile.Name(c.Deltas.Table, id, dir)}
		if p.file, err = dev.Create(p.name); err != nil {
			return nil, errors.Join(err, d.close(), d.remove())
		}
		p.writer = d.buffers.NewWriter(p.file)
		d.parts = append(d.parts, p)
	}
	return d, nil
}

// Save saves the rows of refs that are yet to be saved, before they are updated.
func (d *Dump) Save(refs []uint32) {
	if d == nil || d.c.Cache.Unsaved() == 0 {
		return
	}
	d.visit(refs, d.takeUnsavedLocked)
}

// savePinned saves the rows of a live working set, dirty or not, because they may change as soon as
// Snapshot returns, and rows with Saved may have changed already.
func (d *Dump) savePinned(refs []uint32) {
	d.visit(refs, func(e rowcache.Entry) rowcache.Change {
		switch {
		case e.Flags&rowcache.Dirty == 0:
			d.takeLocked(e)
			return rowcache.Change{Set: rowcache.Dirty}
		case e.Flags&unsaved != unsaved:
			return rowcache.Change{} // it was already saved for another set
		case e.Flags&Saved != 0 && d.inherits:
			d.saved--
		}
		d.takeLocked(e)
		return rowcache.Change{Clear: rowcache.Old | Saved}
	})
}

func (d *Dump) visit(refs []uint32, take func(rowcache.Entry) rowcache.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // all rows were saved
	}
	before := d.counts.dirtyRows
	defer func() { d.counts.early += d.counts.dirtyRows - before }()
	for len(refs) > 0 {
		n := min(len(refs), d.roomLocked())
		d.locate(func() {
			d.c.Cache.Visit(refs[:n], func(_ int, e rowcache.Entry) rowcache.Change { return take(e) })
		})
		refs = refs[n:]
	}
}

// saveSlot saves the rows of a slot before some of them become clean.
func (d *Dump) saveSlot(slot uint32, mask uint64) {
	if d == nil || d.c.Cache.Unsaved() == 0 {
		return
	}
	var few [32]uint32
	refs := few[:0]
	d.c.Cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		if e.Flags&unsaved == unsaved {
			refs = append(refs, e.Ref)
		}
		return rowcache.Change{}
	})
	d.visit(refs, d.takeUnsavedLocked)
}

// collect calls take, which saves a row, for up to most rows that p picks, in memory order. It may
// miss rows that move meanwhile.
func (d *Dump) collect(p rowcache.Pick, most int64, take func(rowcache.Entry) rowcache.Change, canceled func() error) (rows int64, err error) {
	for at, end := uint32(0), false; !end && rows < most; {
		if err := errors.Join(canceled(), d.failed()); err != nil {
			return rows, err
		}
		d.mu.Lock()
		n := min(int64(d.roomLocked()), most-rows, rowsAtOnce)
		d.locate(func() {
			at, end = d.c.Cache.VisitFrom(at, p, int(n), func(e rowcache.Entry) rowcache.Change {
				rows++
				return take(e)
			})
		})
		d.mu.Unlock()
	}
	return rows, nil
}

// dirOf is the number of the directory whose file gets a row. REQUIRES: it is called within locate.
func (d *Dump) dirOf(key uint64) uint16 {
	if len(d.parts) == 1 {
		return 0
	}
	return d.domains.of(d.c.Hash(key), d.kind)
}

// failed returns the first error of each file.
func (d *Dump) failed() (err error) {
	for _, p := range d.parts {
		err = errors.Join(err, p.writer.Err())
	}
	return err
}

// locate calls fn, which examines rows in the cache, while the index cannot change, as dirOf
// requires.
func (d *Dump) locate(fn func()) {
	if len(d.parts) > 1 {
		d.c.IndexMu.RLock()
		defer d.c.IndexMu.RUnlock()
	}
	fn()
}

// roomLocked is how many rows fit into the block of each file, at least one. It passes full blocks
// to the writers, and waits for a free block if there is none.
func (d *Dump) roomLocked() int {
	entry, rows := d.c.Deltas.EntrySize(), math.MaxInt
	for _, p := range d.parts {
		if p.block != nil && p.used+entry > len(p.block) {
			d.flushLocked(p, len(p.block))
		}
		if p.block == nil {
			p.block, p.used, p.rows = d.buffers.Block(), deltafile.HeaderBytes, 0
		}
		rows = min(rows, (len(p.block)-p.used)/entry)
	}
	return rows
}

// takeUnsavedLocked saves a row if it is yet to be saved. It runs under the cache's mutex.
func (d *Dump) takeUnsavedLocked(e rowcache.Entry) rowcache.Change {
	if e.Flags&unsaved != unsaved {
		return rowcache.Change{}
	}
	if e.Flags&Saved != 0 && d.inherits {
		d.saved--
		if e.Flags&Stored == 0 && d.c.Trained(e.Row) {
			d.counts.fresh++
		}
		return rowcache.Change{Clear: rowcache.Old}
	}
	d.takeLocked(e)
	return rowcache.Change{Set: Saved, Clear: rowcache.Old}
}

// takeLocked adds a row to the block of its file, if it was ever trained.
func (d *Dump) takeLocked(e rowcache.Entry) {
	if !d.c.Trained(e.Row) {
		return
	}
	p := d.parts[d.dirOf(e.Key)]
	if d.kind == deltafile.Clean && p.count[deltafile.Clean] == p.cap {
		return // the directory has no room for more
	}
	if e.Flags&Stored == 0 {
		d.counts.fresh++
	}
	if d.kind == deltafile.Dirty {
		d.counts.dirtyRows++
	}
	p.count[d.kind]++
	p.used = len(deltafile.AppendEntry(p.block[:p.used], e.Key, uint32(e.Uses), e.Flags&Stored != 0, e.Row))
	p.rows++
}

// flushLocked passes that many bytes of a file's block to its writer.
func (d *Dump) flushLocked(p *dumpPart, bytes int) {
	b := p.block[:bytes]
	clear(b[p.used:])
	deltafile.Seal(b, deltafile.Header{Table: d.c.Deltas.Table, File: d.id, Block: p.next, Rows: uint32(p.rows), Kind: d.kind, Dir: uint32(p.dir)})
	p.writer.Write(p.block, bytes, p.bytes)
	p.block = nil
	p.bytes += int64(bytes)
	p.next++
}

// endDirty ends the part of dirty rows in each file, once all dirty rows are saved. With more,
// clean rows follow.
func (d *Dump) endDirty(more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !more {
		d.flushLastLocked()
	}
	for _, p := range d.parts {
		if more && p.block != nil && p.rows > 0 {
			d.flushLocked(p, len(p.block))
		}
		p.dirtyBytes = p.bytes
	}
	if more {
		d.kind = deltafile.Clean
	}
}

func (d *Dump) flushLastLocked() {
	for _, p := range d.parts {
		if p.block != nil && p.rows > 0 {
			d.flushLocked(p, int(d.c.Deltas.Padded(int64(p.used))))
		}
	}
}

// finish makes the files durable. All rows have been saved.
func (d *Dump) finish() error {
	d.mu.Lock()
	d.flushLastLocked()
	d.closed = true
	d.mu.Unlock()
	errs := make([]error, len(d.parts))
	var done sync.WaitGroup
	for i, p := range d.parts {
		done.Go(func() {
			defer panics.Exit("making the rows of a snapshot durable")
			errs[i] = p.finish(d.c.Deltas.Devices[p.dir])
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

func (p *dumpPart) finish(dev blockio.Device) error {
	if err := p.writer.Wait(); err != nil || p.bytes == 0 {
		return err // an empty file is not kept
	}
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sparsetable: sync the rows of a snapshot: %w", err)
	}
	if err := dev.SyncDir(); err != nil {
		return fmt.Errorf("sparsetable: sync directory: %w", err)
	}
	return nil
}

// close frees the dump's memory and closes its files, whether finish was called or not. REQUIRES:
// no row is dirty and old any more.
func (d *Dump) close() error {
	d.mu.Lock()
	finished := d.closed
	d.closed = true
	d.mu.Unlock()
	var errs []error
	for _, p := range d.parts {
		if !finished {
			_ = p.writer.Wait() // the file is not needed, or the error is known
		}
		errs = append(errs, p.file.Close())
	}
	return errors.Join(append(errs, d.buffers.GiveBack())...)
}

// remove deletes the files.
func (d *Dump) remove() (err error) {
	for _, p := range d.parts {
		err = errors.Join(err, d.c.removeDelta(p.name, keptDelta{p.reserved, p.dir}))
	}
	return err
}

// removeEmpty deletes the files that have no rows.
func (d *Dump) removeEmpty() (err error) {
	for _, p := range d.parts {
		if p.bytes == 0 {
			err = errors.Join(err, d.c.removeDelta(p.name, keptDelta{p.reserved, p.dir}))
		}
	}
	return err
}
