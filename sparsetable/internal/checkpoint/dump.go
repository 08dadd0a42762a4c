package checkpoint

import (
	"errors"
	"fmt"
	"sync"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/rowcache"
)

// Dump collects the rows of a snapshot while that is being written. A row
// that is dirty and old (rowcache.Old) is yet to be saved, unless it has Saved and the
// snapshot inherits the file that has it. Code that is about to
// change such a row, to write it to a bucket, or to drop it from the cache, saves
// it first.
type Dump struct {
	c      *Store
	file   blockio.File
	id     uint64
	writer *deltafile.Writer
	// claimed is what the directory is charged for the file. No lock guards it,
	// because only one goroutine at a time works on a snapshot.
	claimed int64
	// inherits says that rows with Saved are in files of earlier snapshots, saved how
	// many of these were not visited yet.
	inherits bool
	saved    int64

	mu     sync.Mutex
	closed bool
	block  []byte // being filled; nil: none
	used   int
	rows   int // in block
	next   uint32
	kind   deltafile.Kind
	bytes  int64 // handed to the writer
	counts dumpCounts
}

type dumpCounts struct {
	dirtyBytes, dirtyRows int64
	cleanRows             int64
	fresh                 int64 // dirty rows that no bucket has, those of inherited files included
	early                 int64 // dirty rows that visit saved, because they were about to change or leave the cache
}

// unsaved are the flags of rows that a running snapshot has yet to save. As long as a row
// has both, its words and stored are as they were when the snapshot was fixed.
const unsaved = rowcache.Dirty | rowcache.Old

// rowsAtOnce is for how many rows the mutexes of the dump and of the cache are held at a
// time.
const rowsAtOnce = 1024

// newDump makes the file, with extra blocks beyond those of the pool. The file's name is
// not durable before finish.
func (c *Store) newDump(id uint64, extra int) (*Dump, error) {
	name, dev := deltafile.Name(c.Deltas.Table, id), c.Deltas.Device
	f, err := dev.Create(name)
	if err != nil {
		return nil, err
	}
	w, err := c.Deltas.NewWriter(f, extra)
	if err != nil {
		return nil, errors.Join(err, f.Close(), dev.Remove(name))
	}
	return &Dump{c: c, file: f, id: id, writer: w}, nil
}

func (d *Dump) name() string { return deltafile.Name(d.c.Deltas.Table, d.id) }

// Save saves those rows of refs that are yet to be saved, before they are updated.
func (d *Dump) Save(refs []uint32) {
	if d == nil || d.c.Cache.Owed() == 0 {
		return
	}
	d.visit(refs, d.takeUnsavedLocked)
}

// savePinned saves the rows of a live working set, whether they are dirty or not,
// because they may change as soon as Snapshot returns, and those that have Saved may
// have changed already.
func (d *Dump) savePinned(refs []uint32) {
	d.visit(refs, func(e rowcache.Entry) rowcache.Change {
		switch {
		case e.Flags&rowcache.Dirty == 0:
			d.takeLocked(e)
			return rowcache.Change{Set: rowcache.Dirty}
		case e.Flags&unsaved != unsaved:
			return rowcache.Change{} // it was saved for another set
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
		d.c.Cache.Visit(refs[:n], func(_ int, e rowcache.Entry) rowcache.Change { return take(e) })
		refs = refs[n:]
	}
}

// saveSlot saves the rows of a slot before some of them become clean.
func (d *Dump) saveSlot(slot uint32, mask uint64) {
	if d == nil || d.c.Cache.Owed() == 0 {
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

// collect calls take, which saves a row, for the rows that p picks, in memory
// order, for at most that many. It may miss rows that move meanwhile.
func (d *Dump) collect(p rowcache.Pick, most int64, take func(rowcache.Entry) rowcache.Change, canceled func() error) (rows int64, err error) {
	for at, end := uint32(0), false; !end && rows < most; {
		if err := errors.Join(canceled(), d.writer.Err()); err != nil {
			return rows, err
		}
		d.mu.Lock()
		n := min(int64(d.roomLocked()), most-rows, rowsAtOnce)
		at, end = d.c.Cache.VisitFrom(at, p, int(n), func(e rowcache.Entry) rowcache.Change {
			rows++
			return take(e)
		})
		d.mu.Unlock()
	}
	return rows, nil
}

// roomLocked is how many rows fit into the block, at least one; it hands a full
// block to the writer, and waits for a free one where there is none.
func (d *Dump) roomLocked() int {
	entry := d.c.Deltas.EntrySize()
	if d.block != nil && d.used+entry > len(d.block) {
		d.flushLocked(len(d.block))
	}
	if d.block == nil {
		d.block, d.used, d.rows = d.writer.Block(), deltafile.HeaderBytes, 0
	}
	return (len(d.block) - d.used) / entry
}

// takeUnsavedLocked saves a row if that is yet to be saved. It runs under the cache's
// mutex.
func (d *Dump) takeUnsavedLocked(e rowcache.Entry) rowcache.Change {
	if e.Flags&unsaved != unsaved {
		return rowcache.Change{}
	}
	if e.Flags&Saved != 0 && d.inherits {
		d.saved--
		if e.Flags&stored == 0 && d.c.Trained(e.Row) {
			d.counts.fresh++
		}
		return rowcache.Change{Clear: rowcache.Old}
	}
	d.takeLocked(e)
	return rowcache.Change{Set: Saved, Clear: rowcache.Old}
}

// takeLocked adds a row to the block, if it was ever trained.
func (d *Dump) takeLocked(e rowcache.Entry) {
	if !d.c.Trained(e.Row) {
		return
	}
	if e.Flags&stored == 0 {
		d.counts.fresh++
	}
	if d.kind == deltafile.Dirty {
		d.counts.dirtyRows++
	} else {
		d.counts.cleanRows++
	}
	d.used = len(deltafile.AppendEntry(d.block[:d.used], e.Key, uint32(e.Uses), e.Flags&stored != 0, e.Row))
	d.rows++
}

// flushLocked hands that many bytes of the block to the writer.
func (d *Dump) flushLocked(bytes int) {
	b := d.block[:bytes]
	clear(b[d.used:])
	deltafile.Seal(b, deltafile.Header{Table: d.c.Deltas.Table, File: d.id, Block: d.next, Rows: uint32(d.rows), Kind: d.kind})
	d.writer.Write(d.block, bytes, d.bytes)
	d.block = nil
	d.bytes += int64(bytes)
	d.next++
}

// endDirty ends the file's part of dirty rows, once all of them are saved. With
// more, clean rows follow.
func (d *Dump) endDirty(more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if more {
		if d.block != nil && d.rows > 0 {
			d.flushLocked(len(d.block))
		}
		d.kind = deltafile.Clean
	} else {
		d.flushLastLocked()
	}
	d.counts.dirtyBytes = d.bytes
}

func (d *Dump) flushLastLocked() {
	if d.block != nil && d.rows > 0 {
		d.flushLocked(int(d.c.Deltas.Padded(int64(d.used))))
	}
}

// finish makes the file durable. All rows have been saved.
func (d *Dump) finish() error {
	d.mu.Lock()
	d.flushLastLocked()
	d.closed = true
	d.mu.Unlock()
	if err := d.writer.Wait(); err != nil {
		return err
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sparsetable: sync the rows of a snapshot: %w", err)
	}
	if err := d.c.Deltas.Device.SyncDir(); err != nil {
		return fmt.Errorf("sparsetable: sync directory: %w", err)
	}
	return nil
}

// close frees the delta's memory and closes its file, whether finish was called or
// not. REQUIRES: no row is dirty and old any more.
func (d *Dump) close() error {
	d.mu.Lock()
	finished := d.closed
	d.closed = true
	d.mu.Unlock()
	if !finished {
		_ = d.writer.Wait() // the file is not needed, or the error is known
	}
	return errors.Join(d.writer.GiveBack(), d.file.Close())
}
