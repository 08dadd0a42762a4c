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

// A delta file holds the rows that were not in buckets when a snapshot was
// fixed, in blocks of deltaBlockBytes (the last may be shorter), each whole
// units of the table. Integers are little-endian:
//
//	0   magic     "ADL1"
//	4   crc       uint32, CRC-32C of everything behind it, padding included
//	8   table     uint64
//	16  file      uint64, random, the one in its name
//	24  block     uint32, its number
//	28  rows      uint32
//	32  rows times: key uint64, info uint32, 0 uint32, row
//	…   zeros
//
// info is how often the row was used, times two, plus one if its bucket has an
// older version of it.
const (
	deltaMagic       = "ADL1"
	deltaHeaderBytes = 32
	deltaEntryBytes  = 16 // without the row
	deltaBlockTarget = 256 << 10
	deltaSuffix      = ".delta"
)

func deltaBlockBytes(l Layout) int {
	return int(roundUp(max(deltaBlockTarget, deltaHeaderBytes+deltaEntryBytes+int64(l.Bytes())), 4096))
}

func deltaName(table, file uint64) string {
	return fmt.Sprintf("%016x-%016x%s", table, file, deltaSuffix)
}

// snapshotDelta collects the rows of a snapshot while it is being written:
// from the rows that are marked rowSaving, whoever is about to change one, or
// to let it go, saves it first.
type snapshotDelta struct {
	t *ssd

	mu    sync.Mutex
	file  blockio.File
	id    uint64
	block []byte // being filled
	used  int
	rows  int // in block
	next  uint32
	bytes int64 // written
	total int64 // rows saved
	fresh int64 // of those, rows that no bucket has
	err   error // the first; nothing is saved any more
}

// newDelta makes the file. Its name is not durable before syncNames.
func (t *ssd) newDelta(id uint64) (*snapshotDelta, error) {
	block, err := t.pool.Get(deltaBlockBytes(t.layout))
	if err != nil {
		return nil, err
	}
	f, err := t.devices[0].Create(deltaName(t.tableID, id))
	if err != nil {
		t.pool.Put(block)
		return nil, err
	}
	return &snapshotDelta{t: t, file: f, id: id, block: block, used: deltaHeaderBytes}, nil
}

// save saves the rows of refs that are marked and takes the marks away.
func (d *snapshotDelta) save(refs []uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.block == nil {
		return // closed: no row is marked
	}
	for len(refs) > 0 {
		n := min(len(refs), d.roomLocked())
		d.t.cache.Visit(refs[:n], func(_ int, e rowcache.Entry) rowcache.Change { return d.takeLocked(e) })
		refs = refs[n:]
	}
}

// saveAll saves all rows that are marked.
func (d *snapshotDelta) saveAll(canceled func() error) error {
	// Rows may move while the cache shrinks, so one pass may miss some.
	for {
		for at, end := uint32(0), false; !end; {
			if err := canceled(); err != nil {
				return err
			}
			d.mu.Lock()
			at, end = d.t.cache.VisitFrom(at, min(d.roomLocked(), pullChunk), d.takeLocked)
			err := d.err
			d.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if d.t.cache.ChangeAll(rowSaving, rowcache.Change{}) == 0 {
			return nil
		}
	}
}

// roomLocked is how many rows fit into the block, at least one; it writes a
// full block.
func (d *snapshotDelta) roomLocked() int {
	entry := deltaEntryBytes + d.t.layout.Bytes()
	if d.used+entry > len(d.block) {
		d.flushLocked(len(d.block))
	}
	return (len(d.block) - d.used) / entry
}

// takeLocked adds a row to the block if it is marked. It runs under the cache's
// mutex.
func (d *snapshotDelta) takeLocked(e rowcache.Entry) rowcache.Change {
	if e.Flags&rowSaving == 0 {
		return rowcache.Change{}
	}
	done := rowcache.Change{Clear: rowSaving}
	if d.err != nil || !d.t.trained(e.Row) {
		return done
	}
	info := uint32(min(e.Uses, 1<<30)) << 1
	if e.Flags&rowStored != 0 {
		info |= 1
	} else {
		d.fresh++
	}
	b := d.block[d.used : d.used : d.used+deltaEntryBytes+d.t.layout.Bytes()]
	b = binary.LittleEndian.AppendUint64(b, e.Key)
	b = binary.LittleEndian.AppendUint32(b, info)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = appendWords(b, e.Row)
	d.used += len(b)
	d.rows++
	d.total++
	return done
}

// flushLocked writes the block, that many bytes of it.
func (d *snapshotDelta) flushLocked(bytes int) {
	b := d.block[:bytes]
	clear(b[d.used:])
	copy(b, deltaMagic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], d.t.tableID)
	le.PutUint64(b[16:], d.id)
	le.PutUint32(b[24:], d.next)
	le.PutUint32(b[28:], uint32(d.rows))
	le.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	if d.err == nil {
		if _, err := d.file.WriteAt(b, d.bytes); err != nil {
			d.err = fmt.Errorf("sparsetable: write the dirty rows of a snapshot: %w", err)
		}
	}
	d.bytes += int64(bytes)
	d.next++
	d.used, d.rows = deltaHeaderBytes, 0
}

// finish makes the file durable.
func (d *snapshotDelta) finish() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows > 0 {
		d.flushLocked(int(roundUp(int64(d.used), int64(d.t.pool.Unit()))))
	}
	if d.err != nil {
		return d.err
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sparsetable: sync the dirty rows of a snapshot: %w", err)
	}
	if err := d.t.devices[0].SyncDir(); err != nil {
		return fmt.Errorf("sparsetable: sync directory: %w", err)
	}
	return nil
}

// close gives up what the delta holds in memory. No row may be marked.
func (d *snapshotDelta) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = errors.Join(d.err, ErrClosed)
	d.t.pool.Put(d.block)
	d.block = nil
	return d.file.Close()
}
