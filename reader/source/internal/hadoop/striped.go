package hadoop

import (
	"errors"
	"math"

	"github.com/klauspost/reedsolomon"
)

// group reads a block group of an erasure-coded file. Each data block is a lane. Its reader
// continues after each cell where it left off; meanwhile its DataNode sends ahead, as far as the
// connection's buffers reach.
//
// A data block that cannot be read is computed from other blocks, starting at the byte where its
// reader stopped. Its lane then has readers of as many other blocks as needed, all at the same
// byte. So only the bytes that were decoded together are kept, and a short read reads few bytes of
// each block. Other lanes may read the same blocks at other offsets, through their own connections.
//
// A block that fails is lost to all lanes. When too few are left, all are tried once more, with the
// whole time limit; so every loop ends.
type group struct {
	r       *reader // of the file
	lanes   []lane  // by data block
	lost    []error // by block; nil: it has not failed
	patient bool    // too few blocks were left, so those that failed are tried once more
	ready   []byte  // bytes to hand out
	from    *reader // the reader that has these bytes; nil: they were decoded
	code    reedsolomon.Encoder
	shards  [][]byte // by block; for decode
	wanted  []bool   // by block; for decode
}

type lane struct {
	in  []*reader // by block; nil: not read yet. The lane's own block is read without decoding
	buf []byte    // decoded bytes
}

// decodeBytes is the maximum number of bytes decoded at a time: a packet of the usual size.
const decodeBytes = 64 << 10

var zeros [decodeBytes]byte

// advanceGroup makes the next bytes at r.offset ready, within their cell.
func (r *reader) advanceGroup() error {
	code := r.b.code
	g := r.group
	if g == nil {
		g = &group{r: r, lanes: make([]lane, code.data), lost: make([]error, len(r.b.units))}
		for i := range g.lanes {
			g.lanes[i].in = make([]*reader, len(r.b.units))
		}
		r.group = g
	}
	u, at, left := code.place(r.b, r.offset)
	l := &g.lanes[u]
	for {
		if g.direct(u, at) {
			in, err := g.read(l, u, at)
			if err != nil {
				return err
			}
			if in != nil {
				g.from, g.ready = in, in.ready()[:min(left, int64(len(in.ready())))]
				return nil
			}
		}
		if done, err := g.decode(u, at, left); done || err != nil {
			return err
		}
		if g.lost[u] == nil {
			continue // too few others are left for decoding, so u itself is read
		}
		if g.patient {
			return g.failure()
		}
		g.patient = true
		clear(g.lost)
	}
}

// direct reports whether block u is read rather than decoded. It is decoded if it has failed, or if
// its DataNode failed lately, the lane is not reading it, and enough other blocks are on DataNodes
// that did not fail.
func (g *group) direct(u int, at int64) bool {
	if g.lost[u] != nil || g.rank(&g.lanes[u], u, at) <= 0 {
		return g.lost[u] == nil
	}
	good := 0
	for v, b := range g.r.b.units {
		if v != u && (at >= b.length || g.lost[v] == nil && g.r.c.nodes.suspicion(b) == 0) {
			good++
		}
	}
	return good < g.r.b.code.data
}

// rank orders the blocks that a lane may read at a byte, the lowest first: those that it is
// reading, those whose DataNodes have not failed lately, then the others.
func (g *group) rank(l *lane, v int, at int64) int64 {
	if in := l.in[v]; in != nil && in.s != nil && in.offset == at {
		return -1
	}
	return g.r.c.nodes.suspicion(g.r.b.units[v])
}

// read makes bytes of block v ready, from byte at of the block on, and returns the lane's reader
// that has them. If the block cannot be read, it is lost, and the reader is nil.
func (g *group) read(l *lane, v int, at int64) (*reader, error) {
	r, in := g.r, l.in[v]
	if in == nil {
		in = r.c.newReader(r.ctx, r.blocks, at)
		in.b, in.renewed = r.b.units[v], r.renewed
		l.in[v] = in
	}
	if in.offset != at {
		in.hangUp()
		in.offset = at
	}
	in.spare = !g.patient
	if len(in.ready()) > 0 {
		return in, nil
	}
	err := in.advance()
	if err == nil {
		return in, nil
	}
	in.hangUp()
	if !errors.As(err, new(*blockError)) {
		return nil, err
	}
	g.lost[v] = err
	return nil, nil
}

// decode computes bytes of block u, from byte at of the block on, from other blocks and makes them
// ready. It returns false if too few of these could be read.
func (g *group) decode(u int, at, left int64) (done bool, err error) {
	b, l := g.r.b, &g.lanes[u]
	if g.code == nil {
		if g.code, err = b.code.decoder(); err != nil {
			return false, err
		}
		g.shards, g.wanted = make([][]byte, len(b.units)), make([]bool, len(b.units))
	}
	if l.buf == nil {
		l.buf = make([]byte, decodeBytes)
	}
	clear(g.shards)
	missing, n := b.code.data, int(min(left, decodeBytes))
	for v, unit := range b.units {
		if v != u && at >= unit.length {
			g.shards[v] = zeros[:]
			missing--
		}
	}
	for ; missing > 0; missing-- {
		v := g.next(l, u, at)
		if v < 0 {
			return false, nil
		}
		in, err := g.read(l, v, at)
		if err != nil {
			return false, err
		}
		if in == nil {
			missing++
			continue
		}
		g.shards[v] = in.ready()
		n = min(n, len(in.ready()))
	}
	for v, shard := range g.shards {
		if shard != nil {
			g.shards[v] = shard[:n]
		} else if in := l.in[v]; in != nil {
			in.hangUp() // other blocks are used instead
		}
	}
	g.shards[u] = l.buf[:0]
	clear(g.wanted)
	g.wanted[u] = true
	if err := g.code.ReconstructSome(g.shards, g.wanted); err != nil {
		return false, err
	}
	g.from, g.ready = nil, l.buf[:n]
	for v, in := range l.in {
		if in == nil {
			continue
		}
		if v != u && at < in.b.length && g.shards[v] != nil {
			in.take(n)
		}
		if !g.patient {
			in.reportBad()
		}
	}
	return true, nil
}

// next returns the best block to decode u from that is not among the shards yet, or -1 if there is
// none.
func (g *group) next(l *lane, u int, at int64) int {
	best, least := -1, int64(math.MaxInt64)
	for v := range g.shards {
		if v == u || g.lost[v] != nil || g.shards[v] != nil {
			continue
		}
		if rank := g.rank(l, v, at); best < 0 || rank < least {
			best, least = v, rank
		}
	}
	return best
}

func (g *group) take(n int) {
	g.ready = g.ready[n:]
	if g.from != nil {
		g.from.take(n)
	}
}

// keep closes the connections of all lanes but the given one; -1 closes all.
func (g *group) keep(lane int) {
	for i := range g.lanes {
		for _, in := range g.lanes[i].in {
			if in != nil && i != lane {
				in.hangUp()
			}
		}
	}
}

// closeUnneeded closes the connections that a reader that is not used for a while does not need for its next
// byte.
func (r *reader) closeUnneeded() {
	if r.group != nil {
		u, _, _ := r.b.code.place(r.b, r.offset)
		r.group.keep(u)
	}
}

// failure returns an error that says which blocks of the group are lost.
func (g *group) failure() error {
	e := &blockError{b: g.r.b, offset: g.r.offset}
	for _, err := range g.lost {
		var one *blockError
		if !errors.As(err, &one) {
			continue
		}
		e.lost = append(e.lost, err)
		e.faults = append(e.faults, one.faults...)
		if len(one.faults) == 0 { // its DataNode may come back
			e.faults = append(e.faults, &replicaError{kind: unreachable, err: err})
		}
	}
	return e
}
