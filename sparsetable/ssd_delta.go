package sparsetable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/rowcache"
)

// A delta file is written by a snapshot; later ones may refer to it, too. It holds first
// the rows whose values at the time of the snapshot are in no bucket, and in no other
// delta file of the snapshot. Then it holds those rows of the cache that
// are used most although buckets have them too: whoever opens the snapshot starts
// with them in the cache. The file consists of blocks of deltaBlockBytes, of which
// the last may be shorter; each block takes a whole number of the table's units.
// Integers are little-endian:
//
//	0   magic     "ADL2"
//	4   crc       uint32, CRC-32C of everything behind it, padding included
//	8   table     uint64
//	16  file      uint64, random, the one in its name
//	24  block     uint32, its number
//	28  rows      uint32
//	32  kind      uint32: 0 its rows are dirty, 1 clean
//	36  0         uint32
//	40  rows times: key uint64, info uint32, 0 uint32, row
//	…   zeros
//
// info is how often the row was used, times two, plus one if its bucket has a
// version of it. Dirty blocks come first; the catalog records how many bytes and
// rows they have. The blocks of either kind begin with the rows used most, in
// classes, see deltaClasses. Only the rows that had to be saved early, because they
// were about to change or leave the cache while the snapshot was written, are out
// of this order.
const (
	deltaMagic       = "ADL2"
	deltaHeaderBytes = 40
	deltaEntryBytes  = 16 // without the row
	deltaBlockTarget = 64 << 10
	deltaSuffix      = ".delta"
)

// Kinds of blocks.
const (
	deltaDirty = 0
	deltaClean = 1
)

func deltaBlockBytes(l Layout) int {
	return int(roundUp(max(deltaBlockTarget, deltaHeaderBytes+deltaEntryBytes+int64(l.Bytes())), 4096))
}

func deltaName(table, file uint64) string {
	return fmt.Sprintf("%016x-%016x%s", table, file, deltaSuffix)
}

// snapshotDelta collects the rows of a snapshot while that is being written. A row
// that is dirty and old (rowcache.Old) is yet to be saved, unless it has rowSaved and the
// snapshot inherits the file that has it. Code that is about to
// change such a row, to write it to a bucket, or to drop it from the cache, saves
// it first.
type snapshotDelta struct {
	t      *ssd
	file   blockio.File
	id     uint64
	writer *deltaWriter
	// claimed is what the directory is charged for the file. No lock guards it,
	// because only one goroutine at a time works on a snapshot.
	claimed int64
	// inherits says that rows with rowSaved are in files of earlier snapshots, saved how
	// many of these were not visited yet.
	inherits bool
	saved    int64

	mu     sync.Mutex
	closed bool
	block  []byte // being filled; nil: none
	used   int
	rows   int // in block
	next   uint32
	kind   uint32
	bytes  int64 // handed to the writer
	counts deltaCounts
}

type deltaCounts struct {
	dirtyBytes, dirtyRows int64
	cleanRows             int64
	fresh                 int64 // dirty rows that no bucket has, those of inherited files included
	early                 int64 // dirty rows that visit saved, because they were about to change or leave the cache
}

// newDelta makes the file, with extra blocks beyond those of the pool. The
// file's name is not durable before finish.
func (t *ssd) newDelta(id uint64, extra int) (*snapshotDelta, error) {
	name := deltaName(t.tableID, id)
	f, err := t.devices[0].Create(name)
	if err != nil {
		return nil, err
	}
	w, err := t.newDeltaWriter(f, extra)
	if err != nil {
		return nil, errors.Join(err, f.Close(), t.devices[0].Remove(name))
	}
	return &snapshotDelta{t: t, file: f, id: id, writer: w}, nil
}

// save saves those rows of refs that are yet to be saved.
func (d *snapshotDelta) save(refs []uint32) {
	if d.t.cache.Owed() == 0 {
		return
	}
	d.visit(refs, d.takeOwedLocked)
}

// savePinned saves the rows of a live working set, whether they are dirty or not,
// because they may change as soon as Snapshot returns, and those that have rowSaved may
// have changed already.
func (d *snapshotDelta) savePinned(refs []uint32) {
	d.visit(refs, func(e rowcache.Entry) rowcache.Change {
		switch {
		case e.Flags&rowcache.Dirty == 0:
			d.takeLocked(e)
			return rowcache.Change{Set: rowcache.Dirty}
		case e.Flags&rowOwed != rowOwed:
			return rowcache.Change{} // it was saved for another set
		case e.Flags&rowSaved != 0 && d.inherits:
			d.saved--
		}
		d.takeLocked(e)
		return rowcache.Change{Clear: rowcache.Old | rowSaved}
	})
}

func (d *snapshotDelta) visit(refs []uint32, take func(rowcache.Entry) rowcache.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // all rows were saved
	}
	before := d.counts.dirtyRows
	defer func() { d.counts.early += d.counts.dirtyRows - before }()
	for len(refs) > 0 {
		n := min(len(refs), d.roomLocked())
		d.t.cache.Visit(refs[:n], func(_ int, e rowcache.Entry) rowcache.Change { return take(e) })
		refs = refs[n:]
	}
}

// saveSlot saves the rows of a slot before some of them become clean.
func (d *snapshotDelta) saveSlot(slot uint32, mask uint64) {
	if d.t.cache.Owed() == 0 {
		return
	}
	var few [32]uint32
	refs := few[:0]
	d.t.cache.ForEachOfSlot(uint64(slot), mask, func(e rowcache.Entry) rowcache.Change {
		if e.Flags&rowOwed == rowOwed {
			refs = append(refs, e.Ref)
		}
		return rowcache.Change{}
	})
	d.visit(refs, d.takeOwedLocked)
}

// collect calls take, which saves a row, for the rows that p picks, in memory
// order, for at most that many. It may miss rows that move meanwhile.
func (d *snapshotDelta) collect(p rowcache.Pick, most int64, take func(rowcache.Entry) rowcache.Change, canceled func() error) (rows int64, err error) {
	for at, end := uint32(0), false; !end && rows < most; {
		if err := errors.Join(canceled(), d.writer.err()); err != nil {
			return rows, err
		}
		d.mu.Lock()
		n := min(int64(d.roomLocked()), most-rows, pullChunk)
		at, end = d.t.cache.VisitFrom(at, p, int(n), func(e rowcache.Entry) rowcache.Change {
			rows++
			return take(e)
		})
		d.mu.Unlock()
	}
	return rows, nil
}

// roomLocked is how many rows fit into the block, at least one; it hands a full
// block to the writer, and waits for a free one where there is none.
func (d *snapshotDelta) roomLocked() int {
	entry := deltaEntryBytes + d.t.layout.Bytes()
	if d.block != nil && d.used+entry > len(d.block) {
		d.flushLocked(len(d.block))
	}
	if d.block == nil {
		d.block, d.used, d.rows = d.writer.block(), deltaHeaderBytes, 0
	}
	return (len(d.block) - d.used) / entry
}

// takeOwedLocked saves a row if that is yet to be saved. It runs under the cache's
// mutex.
func (d *snapshotDelta) takeOwedLocked(e rowcache.Entry) rowcache.Change {
	if e.Flags&rowOwed != rowOwed {
		return rowcache.Change{}
	}
	if e.Flags&rowSaved != 0 && d.inherits {
		d.saved--
		if e.Flags&rowStored == 0 && d.t.trained(e.Row) {
			d.counts.fresh++
		}
		return rowcache.Change{Clear: rowcache.Old}
	}
	d.takeLocked(e)
	return rowcache.Change{Set: rowSaved, Clear: rowcache.Old}
}

// takeLocked adds a row to the block, if it was ever trained.
func (d *snapshotDelta) takeLocked(e rowcache.Entry) {
	if !d.t.trained(e.Row) {
		return
	}
	info := uint32(min(e.Uses, 1<<30)) << 1
	if e.Flags&rowStored != 0 {
		info |= 1
	} else {
		d.counts.fresh++
	}
	if d.kind == deltaDirty {
		d.counts.dirtyRows++
	} else {
		d.counts.cleanRows++
	}
	b := d.block[d.used : d.used : d.used+deltaEntryBytes+d.t.layout.Bytes()]
	b = binary.LittleEndian.AppendUint64(b, e.Key)
	b = binary.LittleEndian.AppendUint32(b, info)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = appendWords(b, e.Row)
	d.used += len(b)
	d.rows++
}

// flushLocked hands that many bytes of the block to the writer.
func (d *snapshotDelta) flushLocked(bytes int) {
	b := d.block[:bytes]
	clear(b[d.used:])
	copy(b, deltaMagic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], d.t.tableID)
	le.PutUint64(b[16:], d.id)
	le.PutUint32(b[24:], d.next)
	le.PutUint32(b[28:], uint32(d.rows))
	le.PutUint32(b[32:], d.kind)
	le.PutUint32(b[36:], 0)
	le.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	d.writer.write(d.block, bytes, d.bytes)
	d.block = nil
	d.bytes += int64(bytes)
	d.next++
}

// endDirty ends the file's part of dirty rows, once all of them are saved. With
// more, clean rows follow.
func (d *snapshotDelta) endDirty(more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if more {
		if d.block != nil && d.rows > 0 {
			d.flushLocked(len(d.block))
		}
		d.kind = deltaClean
	} else {
		d.flushLastLocked()
	}
	d.counts.dirtyBytes = d.bytes
}

func (d *snapshotDelta) flushLastLocked() {
	if d.block != nil && d.rows > 0 {
		d.flushLocked(int(roundUp(int64(d.used), int64(d.t.pool.Unit()))))
	}
}

// finish makes the file durable. All rows have been saved.
func (d *snapshotDelta) finish() error {
	d.mu.Lock()
	d.flushLastLocked()
	d.closed = true
	d.mu.Unlock()
	if err := d.writer.wait(); err != nil {
		return err
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sparsetable: sync the rows of a snapshot: %w", err)
	}
	if err := d.t.devices[0].SyncDir(); err != nil {
		return fmt.Errorf("sparsetable: sync directory: %w", err)
	}
	return nil
}

// close frees the delta's memory and closes its file, whether finish was called or
// not. REQUIRES: no row is dirty and old any more.
func (d *snapshotDelta) close() error {
	d.mu.Lock()
	finished := d.closed
	d.closed = true
	d.mu.Unlock()
	if !finished {
		_ = d.writer.wait() // the file is not needed, or the error is known
	}
	return errors.Join(d.writer.giveBack(), d.file.Close())
}
