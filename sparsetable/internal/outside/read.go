package outside

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
)

const (
	// Rows that are at most readGap bytes apart are read together, up to mostRead bytes at a time:
	// reading a gap of that size takes as long as a separate read.
	readGap  = 16 << 10
	mostRead = 64 << 10
)

// Row is a row that was read for the key at a position. Words is valid until the function to which
// the Row is passed returns.
type Row struct {
	At    uint32 // the position
	Key   uint64
	Words []float32
}

// reader is the scratch memory of Read.
type reader struct {
	done    blockio.Completions
	arrived []*blockio.Read
	free    []*read
	rows    []Row

	reads, bytes int64 // since the table was opened
}

// read is a read of neighbouring rows of the file.
type read struct {
	read blockio.Read
	want []uint64 // place << 32 | position of the key; part of missing
}

// DeviceReads returns the number of device reads, and their bytes.
func (x *Index) DeviceReads() (reads, bytes int64) { return x.reader.reads, x.reader.bytes }

// Read reads the rows of the missing positions that are outside of buckets and calls take with some
// of them at a time. hashes has the hash of each position. At most about limit bytes are read at a
// time. Read returns the other positions, in missing's memory. There must be only one Read at a
// time.
func (x *Index) Read(ctx context.Context, hashes, missing []uint64, limit int64, take func([]Row) error) (others []uint64, err error) {
	// Move the positions whose rows are read here to the end.
	n := len(missing)
	for i := 0; i < n; {
		at := missing[i]
		if r, ok := x.Find(hashes[at]); ok {
			n--
			missing[i] = missing[n]
			missing[n] = uint64(x.rows[r].place)<<32 | at
		} else {
			i++
		}
	}
	rest := missing[n:]
	slices.Sort(rest)
	p := &x.reader
	inFlight := int64(0)
	var failed error
	for len(rest) > 0 || p.done.Pending() > 0 {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			rest = nil // submit nothing more, and wait for the reads in flight
		}
		for len(rest) > 0 && (inFlight == 0 || inFlight < limit) {
			after, bytes, err := x.submit(rest, inFlight == 0)
			if errors.Is(err, blockio.ErrPoolLimit) {
				break
			}
			if err != nil {
				failed = err
				break
			}
			rest = after
			inFlight += bytes
		}
		p.arrived = p.done.Wait(p.arrived[:0], 1)
		err := x.arrived(hashes, failed == nil)
		if err == nil && len(p.rows) > 0 {
			err = take(p.rows)
		}
		if failed == nil {
			failed = err
		}
		for _, a := range p.arrived {
			inFlight -= int64(len(a.Buf))
			x.Pool.Put(a.Buf)
			p.free = append(p.free, a.User.(*read))
		}
	}
	return missing[:n], failed
}

// submit starts reading the first of the rows together with its neighbours, and returns the others.
// With must, it takes memory beyond the pool's limit if necessary, because no other read is in
// flight that would free some. Without must, it returns ErrPoolLimit if the pool has no room.
func (x *Index) submit(rest []uint64, must bool) (after []uint64, bytes int64, err error) {
	p := &x.reader
	unit := int64(x.Pool.Unit())
	in := x.fileOf(place(rest[0] >> 32))
	span := func(m uint64) (from, to int64) {
		off := x.offset(place(m >> 32))
		return off / unit * unit, (off + x.entryBytes + unit - 1) / unit * unit
	}
	from, to := span(rest[0])
	n := 1
	for n < len(rest) {
		f, e := span(rest[n])
		if x.fileOf(place(rest[n]>>32)) != in || f-to > readGap || e-from > mostRead {
			break
		}
		to = e
		n++
	}
	get := x.Pool.Get
	if must {
		get = x.Pool.GetBeyond
	}
	buf, err := get(int(to - from))
	if err != nil {
		return rest, 0, err
	}
	r := new(read)
	if k := len(p.free); k > 0 {
		r, p.free = p.free[k-1], p.free[:k-1]
	}
	r.want = rest[:n]
	r.read = blockio.Read{File: in.file, Offset: from, Buf: buf, User: r}
	p.reads++
	p.bytes += to - from
	x.Devices[in.dir].Submit(&p.done, []*blockio.Read{&r.read})
	return rest[n:], to - from, nil
}

// arrived checks the finished reads and, if use is true, sets p.rows to their rows.
func (x *Index) arrived(hashes []uint64, use bool) error {
	p := &x.reader
	p.rows = p.rows[:0]
	for _, a := range p.arrived {
		r := a.User.(*read)
		first, last := place(r.want[0]>>32), place(r.want[len(r.want)-1]>>32)
		path := x.fileOf(first).path
		err := a.ErrWithin(int(x.offset(last) + x.entryBytes - a.Offset))
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return &contract.CorruptionError{File: path, Offset: x.blockOf(first), Reason: "the file ends before a row that it had when the table was opened"}
		}
		if err != nil {
			return fmt.Errorf("sparsetable: read %s: %w", path, err)
		}
		if !use {
			continue
		}
		for _, m := range r.want {
			at, place := uint32(m), place(m>>32)
			e := a.Buf[x.offset(place)-a.Offset:][:x.entryBytes]
			i, _ := x.Find(hashes[at])
			if sum := crc32.Checksum(e, castagnoli); sum != x.rows[i].sum {
				return &contract.CorruptionError{File: path, Offset: x.blockOf(place), Reason: fmt.Sprintf("row %d of the block has checksum %08x, but had %08x when the table was opened", uint32(place>>1)%x.perBlock, sum, x.rows[i].sum)}
			}
			p.rows = append(p.rows, Row{At: at, Key: binary.LittleEndian.Uint64(e), Words: offheap.Float32s(e[deltafile.EntryBytes:])})
		}
	}
	return nil
}
