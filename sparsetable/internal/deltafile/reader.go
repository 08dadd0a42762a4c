package deltafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
)

// Reader reads a part of a delta file, the dirty or the clean rows, from beginning to end, a few
// blocks ahead of its caller.
type Reader struct {
	store *Store
	dev   blockio.Device
	f     blockio.File
	path  string
	part  Part
	own   int    // number of buffers that come from Store.Blocks
	id    uint64 // of the file, as its name says
	dir   uint32 // of the file, as its name says
	rows  int64  // delivered so far

	ahead   int64 // offset of the next block to start reading
	at      int64 // offset of the next block to deliver
	blocks  []blockRead
	done    blockio.Completions
	arrived []*blockio.Read

	block []byte // the block that was delivered last
	last  int    // its place in blocks; -1: none
}

// blockRead is a block and the read that fills it.
type blockRead struct {
	block  []byte
	read   blockio.Read
	bytes  int  // of the block in the file; the read may be longer for alignment
	on     bool // it is being read or waits to be delivered
	filled bool
}

// Part says what a Reader reads: a file's bytes between From, where a block begins, and To.
type Part struct {
	Dir      int // the number of the device that has the file
	Name     string
	From, To int64
	Kind     Kind
	Rows     int64 // expected number of rows
}

// NewReader opens a part of a file. It reads that many blocks ahead, or fewer if there is not
// enough memory. The first own blocks come from the pool Blocks, the others from the pool Reads.
func (s *Store) NewReader(p Part, own, blocks int) (*Reader, error) {
	dev := s.Devices[p.Dir]
	f, err := dev.OpenFile(p.Name)
	if err != nil {
		return nil, fmt.Errorf("sparsetable: open the rows of the snapshot: %w", err)
	}
	r := &Reader{store: s, dev: dev, f: f, path: filepath.Join(dev.Dir(), p.Name), part: p, ahead: p.From, at: p.From, own: own, last: -1}
	_, r.dir = split(p.Name)
	r.id = fileOf(p.Name)
	for i := range blocks {
		b, err := r.pool(i).Get(s.BlockBytes())
		if errors.Is(err, blockio.ErrPoolLimit) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.blocks = append(r.blocks, blockRead{block: b})
	}
	for i := range r.blocks {
		r.ask(i)
	}
	return r, nil
}

// ask starts reading the next block into buffer i, if there is a next block.
func (r *Reader) ask(i int) {
	x := &r.blocks[i]
	if r.ahead >= r.part.To {
		return
	}
	n := min(int64(len(x.block)), r.part.To-r.ahead)
	x.read = blockio.Read{File: r.f, Offset: r.ahead, Buf: x.block[:r.store.Padded(n)], User: x}
	x.bytes, x.on, x.filled = int(n), true, false
	r.ahead += n
	r.dev.Submit(&r.done, []*blockio.Read{&x.read})
}

// Corrupt returns a *CorruptionError.
func (r *Reader) Corrupt(off int64, format string, args ...any) error {
	return &CorruptionError{File: r.path, Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// EachBlock calls fn for each block of the parts that several readers read, with the number of the
// reader and the number of the block's rows, until fn returns false. The blocks of one reader come
// in order, and the readers take turns such that all finish together. It returns an error if a part
// does not have the expected number of rows.
func EachBlock(ctx context.Context, readers []*Reader, fn func(i, rows int) (more bool, err error)) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		i := -1
		for j, r := range readers {
			if r.more() && (i < 0 || r.portion() < readers[i].portion()) {
				i = j
			}
		}
		if i < 0 {
			break
		}
		n, err := readers[i].next()
		if err != nil {
			return err
		}
		readers[i].rows += int64(n)
		if more, err := fn(i, n); err != nil || !more {
			return err
		}
	}
	for _, r := range readers {
		if r.rows != r.part.Rows {
			return r.Corrupt(r.part.From, "it has %d %s rows, but should have %d", r.rows, r.part.Kind, r.part.Rows)
		}
	}
	return nil
}

// portion is the fraction of the part that was delivered.
func (r *Reader) portion() float64 {
	return float64(r.at-r.part.From) / float64(r.part.To-r.part.From)
}

// more reports whether a block is left.
func (r *Reader) more() bool { return r.at < r.part.To }

// next delivers the next block and returns the number of its rows. The buffer of the previous block
// is then used for reading ahead.
func (r *Reader) next() (rows int, err error) {
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
			a.User.(*blockRead).filled = true
		}
	}
	b := x.read.Buf[:x.bytes]
	if len(b)%r.store.Unit != 0 {
		return 0, r.Corrupt(r.at, "%d bytes are not a whole number of the table's units", len(b))
	}
	if err := x.read.ErrWithin(len(b)); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return 0, r.Corrupt(r.at, "the file ends within a block of %d bytes", len(b))
	} else if err != nil {
		return 0, fmt.Errorf("sparsetable: read %s: %w", r.path, err)
	}
	number := uint32(r.at / int64(len(x.block)))
	rows, reason := decode(b, Header{Table: r.store.Table, File: r.id, Block: number, Kind: r.part.Kind, Dir: r.dir}, r.store.RowBytes)
	if reason != "" {
		return 0, r.Corrupt(r.at, "%s", reason)
	}
	x.on = false
	r.block, r.last = b, i
	r.at += int64(len(b))
	return rows, nil
}

// pool is the pool from which buffer i comes.
func (r *Reader) pool(i int) *blockio.Pool {
	if i < r.own {
		return r.store.Blocks
	}
	return r.store.Reads
}

// Close waits for the reads in flight and closes the file.
func (r *Reader) Close() error {
	for r.done.Pending() > 0 {
		r.arrived = r.done.Wait(r.arrived[:0], 1)
	}
	for i := range r.blocks {
		r.pool(i).Put(r.blocks[i].block)
	}
	r.blocks = nil
	return r.f.Close()
}

// At is the offset of the block that was delivered last.
func (r *Reader) At() int64 { return r.at - int64(len(r.block)) }

// Entry returns row i of the block, in place.
func (r *Reader) Entry(i int) (key uint64, info uint32, row []float32) {
	b := r.EntryOf(i)
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), offheap.Float32s(b[EntryBytes:])
}

// EntryOf returns the entry of row i, as it is in the file.
func (r *Reader) EntryOf(i int) []byte {
	size := r.store.EntrySize()
	return r.block[HeaderBytes+i*size:][:size]
}
