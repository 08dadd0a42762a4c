package spool

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
)

// Plan says how an arena is divided for merging: two areas, one of which is loaded while the other
// is merged, and a table of a slot's keys.
type Plan struct {
	blocks  int   // of an area
	rows    int   // of an area
	locals  int   // maximum number of slots of a unit
	largest int64 // maximum number of blocks of a unit
}

// Plan divides an arena of that many bytes, for units of a table of n slots. It fails if the arena
// is too small even for a part of a unit.
func (s *Spool) Plan(units []Unit, arena int, n uint32) (Plan, error) {
	var p Plan
	for i := range units {
		p.largest = max(p.largest, int64(len(units[i].blocks)))
		p.locals = max(p.locals, units[i].locals(n))
	}
	p.blocks = int(p.largest)
	// Bisection, because the size of the table of keys is not continuous.
	if low := 0; p.bytes(s) > arena {
		for high := p.blocks; high-low > 1; {
			p.blocks = (low + high) / 2
			if p.bytes(s) > arena {
				high = p.blocks
			} else {
				low = p.blocks
			}
		}
		p.blocks = low
	}
	p.rows = p.blocks * s.perBlock()
	if p.blocks == 0 && p.largest > 0 {
		p.blocks = 1
		return p, fmt.Errorf("merging the imported rows takes %d bytes, but the cache can spare only %d", p.bytes(s), arena)
	}
	return p, nil
}

// Fits reports whether a unit fits into an area.
func (p *Plan) Fits(u *Unit) bool { return len(u.blocks) <= p.blocks }

// KeyTable is the length of a table for that many keys, at most half full.
func KeyTable(keys int) int { return 1 << bits.Len(uint(2*keys-1)) }

func (p *Plan) bytes(s *Spool) int {
	rows := p.blocks * s.perBlock()
	area := p.blocks*s.shape.BlockBytes + padUp(4*(rows+p.locals+1))
	return 2*area + 4*KeyTable(max(rows, 1))
}

// Area holds loaded rows, sorted by slot.
type Area struct {
	Unit *Unit
	Ends bool // this is the last area of the unit
	Err  error

	mem    []byte
	order  []uint32 // offsets of rows in mem, in words, ordered by slot, then as in the source
	starts []uint32 // starts[i]: index in order of the first row of local slot i
	reads  []blockio.Read
	list   []*blockio.Read
}

// RowsOf returns the places of the rows of a slot, in the order in which they were added.
func (a *Area) RowsOf(slot uint32) []uint32 {
	local := a.Unit.local(slot)
	return a.order[a.starts[local]:a.starts[local+1]]
}

// Slots returns an iterator over the slots that have rows, in order; ok is false at the end. The
// table has n slots.
func (a *Area) Slots(n uint32) func() (slot uint32, ok bool) {
	local, end := uint32(0), uint32(a.Unit.locals(n))
	return func() (uint32, bool) {
		for ; local < end; local++ {
			if a.starts[local] < a.starts[local+1] {
				local++
				return a.Unit.slot(local - 1), true
			}
		}
		return 0, false
	}
}

// Entry returns the row at a place, with its key.
func (a *Area) Entry(place uint32, entry int) (key uint64, row []float32) {
	b := a.mem[4*int(place):][:entry:entry]
	return entryKey(b), offheap.Float32s(b[8:])
}

// Loader loads units on its own goroutine, one ahead of the merging.
type Loader struct {
	s      *Spool
	n      uint32 // slots
	plan   Plan
	loaded chan *Area
	free   chan *Area
	done   blockio.Completions
	ready  []*blockio.Read
}

// NewLoader divides arena. It also returns the table of keys.
func (s *Spool) NewLoader(plan Plan, arena []byte, n uint32) (*Loader, []uint32) {
	l := &Loader{s: s, n: n, plan: plan, loaded: make(chan *Area, 2), free: make(chan *Area, 2)}
	take := func(bytes int) []byte {
		b := arena[:bytes:bytes]
		arena = arena[bytes:]
		return b
	}
	blocks := plan.blocks * s.shape.BlockBytes
	mems := [2][]byte{take(blocks), take(blocks)} // aligned
	for _, mem := range mems {
		words := offheap.Uint32s(take(padUp(4 * (plan.rows + plan.locals + 1))))
		l.free <- &Area{
			mem: mem, order: words[:plan.rows], starts: words[plan.rows:][:plan.locals+1],
			reads: make([]blockio.Read, plan.blocks),
		}
	}
	return l, offheap.Uint32s(take(4 * KeyTable(max(plan.rows, 1))))
}

// Loaded delivers the areas in the order of the units. Each must be returned by Free.
func (l *Loader) Loaded() <-chan *Area { return l.loaded }

// Free returns an area to the Loader.
func (l *Loader) Free(a *Area) { l.free <- a }

// Run loads all units and then closes Loaded. It stops when ctx ends, or after the first area with
// an Err.
func (l *Loader) Run(ctx context.Context, units []Unit) {
	defer close(l.loaded)
	for i := range units {
		u := &units[i]
		for rest := u.blocks; ; {
			var a *Area
			select {
			case a = <-l.free:
			case <-ctx.Done():
				return
			}
			n := min(len(rest), l.plan.blocks)
			a.Unit, a.Ends = u, n == len(rest)
			if a.Err = l.load(a, rest[:n]); a.Err == nil {
				l.sort(a, rest[:n])
			}
			err := a.Err
			l.loaded <- a // has room for all areas
			if err != nil {
				return
			}
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
	}
}

// load reads and checks the blocks of an area.
func (l *Loader) load(a *Area, blocks []block) error {
	s := l.s
	// The reads of each device are submitted together.
	for dir, dev := range s.store.Devices {
		a.list = a.list[:0]
		for i, b := range blocks {
			if int(b.number)%len(s.store.Devices) != dir {
				continue
			}
			r := &a.reads[i]
			*r = blockio.Read{File: s.groupOf(b.part).files[dir], Offset: s.offset(b.number), Buf: a.mem[i*s.shape.BlockBytes:][:s.padded(b.rows)], Cookie: uint64(i)}
			a.list = append(a.list, r)
		}
		dev.Submit(&l.done, a.list)
	}
	var failed error
	for l.done.Pending() > 0 {
		l.ready = l.done.Wait(l.ready[:0], 1)
		for _, r := range l.ready {
			b := blocks[r.Cookie]
			err := r.Err
			if err == nil {
				err = s.verify(b, r.Buf)
			} else {
				err = s.readError(b, err)
			}
			failed = errors.Join(failed, err)
			r.File, r.Buf = nil, nil
		}
	}
	return failed
}

// sort sorts the rows of an area by slot, by counting: it counts the rows of each slot, sums the
// counts, and puts each row at its place.
func (l *Loader) sort(a *Area, blocks []block) {
	s, u := l.s, a.Unit
	n, mask := l.n, uint32(1)<<bits.Len32(l.n)-1
	starts := a.starts[:u.locals(l.n)+1]
	clear(starts)
	each := func(fn func(local uint32, at int)) {
		for i, b := range blocks {
			at := i*s.shape.BlockBytes + headerBytes
			for range b.rows {
				slot := uint32(s.store.Hash.Of(entryKey(a.mem[at:]))) & mask
				if slot >= n {
					slot &= mask >> 1
				}
				fn(u.local(slot), at)
				at += s.entry
			}
		}
	}
	each(func(local uint32, _ int) { starts[local+1]++ })
	// First, starts[i+1] is the number of rows of slot i. Then it becomes the index of the first of
	// them, and once all rows are placed, the index after the last.
	sum := uint32(0)
	for i := 1; i < len(starts); i++ {
		sum, starts[i] = sum+starts[i], sum
	}
	each(func(local uint32, at int) {
		a.order[starts[local+1]] = uint32(at / 4)
		starts[local+1]++
	})
}
