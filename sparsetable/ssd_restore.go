package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// removeStrays deletes the delta files that no snapshot has.
func (t *ssd) removeStrays() error {
	if t.readOnly {
		return nil
	}
	wanted := map[string]bool{}
	for _, s := range t.catalog.Snapshots() {
		for _, d := range s.Deltas {
			wanted[d.Name] = true
		}
	}
	names, err := t.devices[0].List()
	if err != nil {
		return fmt.Errorf("sparsetable: list %s: %w", t.devices[0].Dir(), err)
	}
	prefix := fmt.Sprintf("%016x-", t.tableID)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) && strings.HasSuffix(n, deltaSuffix) && !wanted[n] {
			if err := t.devices[0].Remove(n); err != nil {
				return fmt.Errorf("sparsetable: remove an unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}

// restore loads the rows that were dirty when the snapshot was fixed.
func (t *ssd) restore(ctx context.Context, s catalog.Snapshot) error {
	for _, d := range s.Deltas {
		if err := t.restoreDelta(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (t *ssd) restoreDelta(ctx context.Context, d catalog.Delta) (err error) {
	dev := t.devices[0]
	f, err := dev.OpenFile(d.Name)
	if err != nil {
		return fmt.Errorf("sparsetable: open the dirty rows of the snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block, err := t.pool.Get(deltaBlockBytes(t.layout))
	if err != nil {
		return err
	}
	defer t.pool.Put(block)
	r := deltaReader{t: t, f: f, path: filepath.Join(dev.Dir(), d.Name), block: block, size: d.Bytes}
	rows := int64(0)
	for r.at < d.Bytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.next()
		if err != nil {
			return err
		}
		if err := t.restoreBlock(ctx, &r, n); err != nil {
			return err
		}
		rows += int64(n)
	}
	if rows != d.Rows {
		return r.corrupt(0, "it has %d rows, should have %d", rows, d.Rows)
	}
	return nil
}

// restoreBlock puts the rows of the block into the cache, dirty.
func (t *ssd) restoreBlock(ctx context.Context, r *deltaReader, n int) error {
	p := &t.pull
	p.clearBatch()
	refs := make([]uint32, n)
	stored := make([]bool, n)
	for i := range n {
		key, info, row := r.entry(i)
		p.keys = append(p.keys, key)
		p.keyHashes = append(p.keyHashes, slots.Hash(key))
		p.uses = append(p.uses, info>>1)
		p.at = append(p.at, uint32(i))
		p.rows = append(p.rows, row)
		stored[i] = info&1 != 0
	}
	err := t.insert(ctx, refs, func(i int, row []float32) { copy(row, p.rows[i]) }, 0)
	t.cache.Visit(refs, func(i int, _ rowcache.Entry) rowcache.Change {
		if stored[i] {
			return rowcache.Change{Set: rowStored}
		}
		return rowcache.Change{}
	})
	t.cache.Release(refs, true)
	if errors.Is(err, errNoVictims) {
		st := t.cache.Stats()
		return t.overBudget("the snapshot's rows in memory", smallestSSD(t.layout, t.opts.SSD, t.rewrite.stored+st.Rows, 2*st.Rows, 0))
	}
	return err
}

// deltaReader reads the blocks of a delta file.
type deltaReader struct {
	t     *ssd
	f     blockio.File
	path  string
	block []byte
	size  int64 // of the file
	at    int64 // of the next block
	count uint32
	id    uint64 // of the file, as its first block says
}

func (r *deltaReader) corrupt(off int64, format string, args ...any) error {
	return &CorruptionError{File: r.path, Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// next reads a block and returns the number of its rows.
func (r *deltaReader) next() (rows int, err error) {
	off := r.at
	b := r.block[:min(int64(len(r.block)), r.size-off)]
	if int64(len(b))%int64(r.t.pool.Unit()) != 0 {
		return 0, r.corrupt(off, "%d bytes are no whole blocks", len(b))
	}
	if n, err := r.f.ReadAt(b, off); errors.Is(err, io.EOF) {
		return 0, r.corrupt(off, "the file ends after %d of %d bytes", n, len(b))
	} else if err != nil {
		return 0, fmt.Errorf("sparsetable: read %s: %w", r.path, err)
	}
	rows, reason := decodeDeltaBlock(b, r.t.tableID, r.id, r.count, r.t.layout)
	if reason != "" {
		return 0, r.corrupt(off, "%s", reason)
	}
	if r.count == 0 {
		r.id = binary.LittleEndian.Uint64(b[16:])
	}
	r.at += int64(len(b))
	r.count++
	return rows, nil
}

// decodeDeltaBlock checks a block; id does not count for block 0.
func decodeDeltaBlock(b []byte, table, id uint64, block uint32, l Layout) (rows int, reason string) {
	le := binary.LittleEndian
	if len(b) < deltaHeaderBytes || string(b[:4]) != deltaMagic {
		return 0, fmt.Sprintf("it does not begin with %q", deltaMagic)
	}
	if got, want := crc32.Checksum(b[8:], castagnoli), le.Uint32(b[4:]); got != want {
		return 0, fmt.Sprintf("checksum %08x, should be %08x", got, want)
	}
	if le.Uint64(b[8:]) != table || block > 0 && le.Uint64(b[16:]) != id || le.Uint32(b[24:]) != block {
		return 0, "it is a block of another place"
	}
	n := le.Uint32(b[28:])
	if uint64(n)*uint64(deltaEntryBytes+l.Bytes())+deltaHeaderBytes > uint64(len(b)) {
		return 0, fmt.Sprintf("%d rows do not fit it", n)
	}
	return int(n), ""
}

// entry is row i of the block, in place.
func (r *deltaReader) entry(i int) (key uint64, info uint32, row []float32) {
	size := deltaEntryBytes + r.t.layout.Bytes()
	b := r.block[deltaHeaderBytes+i*size:][:size]
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), offheap.Float32s(b[deltaEntryBytes:])
}
