package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/offheap"
)

const (
	// Rows that are at most outsideGap bytes apart are read together, up to
	// outsideReadBytes at a time: reading a gap of that size takes as long as a
	// separate read.
	outsideGap       = 16 << 10
	outsideReadBytes = 64 << 10
)

// outsideRead is a read of neighbouring rows of the file.
type outsideRead struct {
	read blockio.Read
	want []uint64 // place << 32 | position of the key; part of pullState.missing
}

// fetchOutside reads the rows of missing positions that are outside of buckets,
// puts them into the cache, and removes their positions from missing.
func (t *ssd) fetchOutside(ctx context.Context, refs []uint32) error {
	p, x := &t.pull, t.outside
	// The positions whose rows are to be read here are moved to the end.
	n := len(p.missing)
	for i := 0; i < n; {
		at := p.missing[i]
		if r, ok := x.find(p.hashes[at]); ok {
			n--
			p.missing[i] = p.missing[n]
			p.missing[n] = uint64(x.rows[r].place)<<32 | at
		} else {
			i++
		}
	}
	rest := p.missing[n:]
	p.missing = p.missing[:n]
	slices.Sort(rest)
	inFlight := int64(0)
	var failed error
	for len(rest) > 0 || x.done.Pending() > 0 {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			rest = nil // only wait for the reads in flight
		}
		for len(rest) > 0 && (inFlight == 0 || inFlight < t.plan.readBytes/4) {
			after, bytes, err := t.submitOutside(rest, inFlight == 0)
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
		x.arrived = x.done.Wait(x.arrived[:0], 1)
		if err := t.takeOutside(ctx, refs, failed == nil); failed == nil {
			failed = err
		}
		for _, a := range x.arrived {
			inFlight -= int64(len(a.Buf))
			t.pool.Put(a.Buf)
			x.free = append(x.free, a.User.(*outsideRead))
		}
	}
	return failed
}

// submitOutside starts reading the first of the rows, with its neighbours, and
// returns the others. With must, it takes memory beyond the pool's limit if
// necessary, because no other read is in flight that would give some back. Without
// it, it returns ErrPoolLimit where the pool has no room.
func (t *ssd) submitOutside(rest []uint64, must bool) (after []uint64, bytes int64, err error) {
	p, x := &t.pull, t.outside
	unit := int64(t.pool.Unit())
	in := x.fileOf(outsidePlace(rest[0] >> 32))
	span := func(m uint64) (from, to int64) {
		off := x.offset(outsidePlace(m >> 32))
		return off / unit * unit, roundUp(off+x.entryBytes, unit)
	}
	from, to := span(rest[0])
	n := 1
	for n < len(rest) {
		f, e := span(rest[n])
		if x.fileOf(outsidePlace(rest[n]>>32)) != in || f-to > outsideGap || e-from > outsideReadBytes {
			break
		}
		to = e
		n++
	}
	get := t.pool.Get
	if must {
		get = t.pool.GetBeyond
	}
	buf, err := get(int(to - from))
	if err != nil {
		return rest, 0, err
	}
	r := new(outsideRead)
	if k := len(x.free); k > 0 {
		r, x.free = x.free[k-1], x.free[:k-1]
	}
	r.want = rest[:n]
	r.read = blockio.Read{File: in.file, Offset: from, Buf: buf, User: r}
	p.counts.deviceReads++
	p.counts.readBytes += to - from
	t.devices[in.dir].Submit(&x.done, []*blockio.Read{&r.read})
	return rest[n:], to - from, nil
}

// takeOutside puts the rows that have arrived into the cache.
func (t *ssd) takeOutside(ctx context.Context, refs []uint32, use bool) error {
	p, x := &t.pull, t.outside
	p.clearBatch()
	for _, a := range x.arrived {
		r := a.User.(*outsideRead)
		first, last := outsidePlace(r.want[0]>>32), outsidePlace(r.want[len(r.want)-1]>>32)
		path := x.fileOf(first).path
		err := a.ErrWithin(int(x.offset(last) + x.entryBytes - a.Offset))
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return &CorruptionError{File: path, Offset: x.blockOf(first), Reason: "the file ends before a row that it had when the table was opened"}
		}
		if err != nil {
			return fmt.Errorf("sparsetable: read %s: %w", path, err)
		}
		if !use {
			continue
		}
		for _, m := range r.want {
			at, place := uint32(m), outsidePlace(m>>32)
			e := a.Buf[x.offset(place)-a.Offset:][:x.entryBytes]
			i, _ := x.find(p.hashes[at])
			if sum := crc32.Checksum(e, crcTable); sum != x.rows[i].sum {
				return &CorruptionError{File: path, Offset: x.blockOf(place), Reason: fmt.Sprintf("row %d of the block has checksum %08x, but had %08x when the table was opened", uint32(place>>1)%x.perBlock, sum, x.rows[i].sum)}
			}
			row := offheap.Float32s(e[deltafile.EntryBytes:])
			p.keys = append(p.keys, binary.LittleEndian.Uint64(e))
			p.keyHashes = append(p.keyHashes, p.hashes[at])
			p.uses = append(p.uses, t.layout.Stats(row).Count)
			p.at = append(p.at, at)
			p.rows = append(p.rows, row)
		}
	}
	if len(p.keys) == 0 {
		return nil
	}
	return t.insert(ctx, refs, func(i int, row []float32) { copy(row, p.rows[i]) }, true)
}
