package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/offheap"
)

// deltaReader reads a part of a delta file, the dirty or the clean rows, from its
// beginning to its end, a few blocks ahead of its caller.
type deltaReader struct {
	t    *ssd
	f    blockio.File
	path string
	end  int64 // of the part
	kind uint32
	id   uint64 // of the file; 0 until the first block was read

	ahead   int64 // offset of the next block to start reading
	at      int64 // offset of the next block to deliver
	blocks  []deltaRead
	done    blockio.Completions
	arrived []*blockio.Read

	block []byte // the block that was delivered last
	last  int    // its place in blocks; -1: none
}

// deltaRead is a block and the read that fills it.
type deltaRead struct {
	block  []byte
	read   blockio.Read
	bytes  int  // of the block in the file; what is read beyond it is for alignment
	on     bool // it is being read, or waits to be delivered
	filled bool
}

// readDelta opens the part of a delta file between from, where a block begins, and
// to. It reads up to that many blocks ahead, or fewer where there is no memory for
// as many.
func (t *ssd) readDelta(d catalog.Delta, from, to int64, kind uint32, blocks int) (*deltaReader, error) {
	dev := t.devices[0]
	f, err := dev.OpenFile(d.Name)
	if err != nil {
		return nil, fmt.Errorf("sparsetable: open the rows of the snapshot: %w", err)
	}
	r := &deltaReader{t: t, f: f, path: pathOn(dev, d.Name), ahead: from, at: from, end: to, kind: kind, last: -1}
	for i := range blocks {
		b, err := r.pool(i).Get(deltaBlockBytes(t.layout))
		if errors.Is(err, blockio.ErrPoolLimit) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.blocks = append(r.blocks, deltaRead{block: b})
	}
	for i := range r.blocks {
		r.ask(i)
	}
	return r, nil
}

// pathOn is the path of a file, for errors.
func pathOn(dev blockio.Device, name string) string { return filepath.Join(dev.Dir(), name) }

// ask starts reading the next block into buffer i, if there is a next block.
func (r *deltaReader) ask(i int) {
	x := &r.blocks[i]
	if r.ahead >= r.end {
		return
	}
	n := min(int64(len(x.block)), r.end-r.ahead)
	x.read = blockio.Read{File: r.f, Offset: r.ahead, Buf: x.block[:roundUp(n, int64(r.t.pool.Unit()))], User: x}
	x.bytes, x.on, x.filled = int(n), true, false
	r.ahead += n
	r.t.devices[0].Submit(&r.done, []*blockio.Read{&x.read})
}

func (r *deltaReader) corrupt(off int64, format string, args ...any) error {
	return &CorruptionError{File: r.path, Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// eachBlock calls fn for each block of the part, with the number of its rows, as
// long as fn returns true. If it comes to the end, the part must have had want
// rows.
func (r *deltaReader) eachBlock(ctx context.Context, want int64, fn func(rows int) (more bool, err error)) error {
	from, rows := r.at, int64(0)
	for r.more() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.next()
		if err != nil {
			return err
		}
		rows += int64(n)
		if more, err := fn(n); err != nil || !more {
			return err
		}
	}
	if rows != want {
		kind := "clean"
		if r.kind == deltaDirty {
			kind = "dirty"
		}
		return r.corrupt(from, "it has %d %s rows, but should have %d", rows, kind, want)
	}
	return nil
}

// more reports whether a block is left.
func (r *deltaReader) more() bool { return r.at < r.end }

// next delivers the next block and returns the number of its rows. The buffer of
// the block before is then used for reading ahead.
func (r *deltaReader) next() (rows int, err error) {
	if r.last >= 0 {
		r.ask(r.last)
		r.last = -1
	}
	i := 0
	for !r.blocks[i].on || r.blocks[i].read.Offset != r.at {
		i++
	}
	x := &r.blocks[i]
	for !x.filled {
		r.arrived = r.done.Wait(r.arrived[:0], 1)
		for _, a := range r.arrived {
			a.User.(*deltaRead).filled = true
		}
	}
	b := x.read.Buf[:x.bytes]
	if len(b)%r.t.unit != 0 {
		return 0, r.corrupt(r.at, "%d bytes are not a whole number of the table's units", len(b))
	}
	if err := x.read.ErrWithin(len(b)); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return 0, r.corrupt(r.at, "the file ends within a block of %d bytes", len(b))
	} else if err != nil {
		return 0, fmt.Errorf("sparsetable: read %s: %w", r.path, err)
	}
	number := uint32(r.at / int64(len(x.block)))
	rows, reason := decodeDeltaBlock(b, r.t.tableID, r.id, number, r.kind, r.t.layout)
	if reason != "" {
		return 0, r.corrupt(r.at, "%s", reason)
	}
	if r.id == 0 {
		r.id = binary.LittleEndian.Uint64(b[16:])
	}
	x.on = false
	r.block, r.last = b, i
	r.at += int64(len(b))
	return rows, nil
}

// pool is the pool from which buffer i comes: the first deltaPoolBlocks from that
// of delta files, the others from that of all reads.
func (r *deltaReader) pool(i int) *blockio.Pool {
	if i < deltaPoolBlocks {
		return r.t.deltaPool
	}
	return r.t.pool
}

// close waits for the reads in flight and closes the file.
func (r *deltaReader) close() error {
	for r.done.Pending() > 0 {
		r.arrived = r.done.Wait(r.arrived[:0], 1)
	}
	for i := range r.blocks {
		r.pool(i).Put(r.blocks[i].block)
	}
	r.blocks = nil
	return r.f.Close()
}

// decodeDeltaBlock checks a block and returns the number of its rows, or the reason
// why it is damaged. If file is 0, the file's number is not compared.
func decodeDeltaBlock(b []byte, table, file uint64, block, kind uint32, l Layout) (rows int, reason string) {
	le := binary.LittleEndian
	if len(b) < deltaHeaderBytes || string(b[:4]) != deltaMagic {
		return 0, fmt.Sprintf("it does not begin with %q", deltaMagic)
	}
	if got, want := crc32.Checksum(b[8:], castagnoli), le.Uint32(b[4:]); got != want {
		return 0, fmt.Sprintf("checksum %08x, should be %08x", got, want)
	}
	if le.Uint64(b[8:]) != table || file != 0 && le.Uint64(b[16:]) != file || le.Uint32(b[24:]) != block || le.Uint32(b[32:]) != kind {
		return 0, "the block belongs to another table, file or place"
	}
	n := le.Uint32(b[28:])
	if uint64(n)*uint64(deltaEntryBytes+l.Bytes())+deltaHeaderBytes > uint64(len(b)) {
		return 0, fmt.Sprintf("its %d rows do not fit into it", n)
	}
	return int(n), ""
}

// entry is row i of the block, in place.
func (r *deltaReader) entry(i int) (key uint64, info uint32, row []float32) {
	b := r.entryOf(i)
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), offheap.Float32s(b[deltaEntryBytes:])
}

// entryOf is the entry of row i, as it lies in the file.
func (r *deltaReader) entryOf(i int) []byte {
	size := deltaEntryBytes + r.t.layout.Bytes()
	return r.block[deltaHeaderBytes+i*size:][:size]
}
