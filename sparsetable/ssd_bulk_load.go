package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"path/filepath"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/offheap"
)

// unit is a set of rows that is merged with the table as a whole: those with
// certain bits in the hash. It is a partition of a spool, or several of them where
// the table has fewer slots than the spool has partitions.
//
//	slot number   | any | bits of common | any |
//	                    ^ top            ^ free
type unit struct {
	free, top uint
	common    uint64 // shifted down by free
	parts     []uint32
	blocks    []spoolBlock // those of a partition are in order
}

// spoolBlock is one block of a partition.
type spoolBlock struct {
	part, number uint32
	rows         int
}

// units divides a spool so that each unit is a set of whole slots of a table of
// 2^level slots or more.
func (s *spool) units(level uint) []unit {
	free := min(s.free, level)
	width := min(s.shape.bits, max(level, s.shift)-s.shift)
	units := make([]unit, 1<<width)
	for i := range units {
		units[i] = unit{free: free, top: s.shift + width, common: s.common | uint64(i)<<(s.shift-s.free)}
		if level < s.shift {
			units[i].top = free // the only unit
		}
	}
	for p := range s.parts {
		u := &units[p&(1<<width-1)]
		u.parts = append(u.parts, uint32(p))
		part := &s.parts[p]
		for i, number := range part.blocks {
			rows := s.perBlock()
			if i == len(part.blocks)-1 {
				rows = part.last
			}
			u.blocks = append(u.blocks, spoolBlock{uint32(p), number, rows})
		}
	}
	return units
}

// doneWith notes that a unit's partitions are not needed any more.
func (s *spool) doneWith(u unit) error {
	var errs []error
	for _, p := range u.parts {
		errs = append(errs, s.done(p))
	}
	return errors.Join(errs...)
}

// local numbers the slots of a unit without gaps.
func (u *unit) local(slot uint32) uint32 {
	return slot>>u.top<<u.free | slot&(1<<u.free-1)
}

// slot is the inverse of local.
func (u *unit) slot(local uint32) uint32 {
	return local>>u.free<<u.top | uint32(u.common)<<u.free | local&(1<<u.free-1)
}

// locals is how many numbers local uses in a table of n slots.
func (u *unit) locals(n uint32) int { return int((n-1)>>u.top+1) << u.free }

// loadPlan says how an arena is divided for merging: two areas, of which one is
// being loaded while the other is merged, and a table of a slot's keys.
type loadPlan struct {
	blocks  int   // of an area
	rows    int   // of an area
	locals  int   // slots of a unit, at most
	largest int64 // blocks of a unit, at most
}

func planLoad(s *spool, units []unit, arena []byte, n uint32) (loadPlan, error) {
	var p loadPlan
	for i := range units {
		p.largest = max(p.largest, int64(len(units[i].blocks)))
		p.locals = max(p.locals, units[i].locals(n))
	}
	p.blocks = int(p.largest)
	// Bisection is used because the size of the table of keys is not continuous.
	if low := 0; p.bytes(s) > len(arena) {
		for high := p.blocks; high-low > 1; {
			p.blocks = (low + high) / 2
			if p.bytes(s) > len(arena) {
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
		return p, fmt.Errorf("%w: merging the imported rows takes %d bytes, the cache can spare %d", ErrBudget, p.bytes(s), len(arena))
	}
	return p, nil
}

// keyTable is the length of a table of that many keys, at most half full.
func keyTable(keys int) int { return 1 << bits.Len(uint(2*keys-1)) }

func (p *loadPlan) bytes(s *spool) int {
	rows := p.blocks * s.perBlock()
	area := p.blocks*s.shape.blockBytes + int(roundUp(4*int64(rows+p.locals+1), 4096))
	return 2*area + 4*keyTable(max(rows, 1))
}

// loadArea holds loaded rows, sorted by slot.
type loadArea struct {
	mem    []byte
	order  []uint32 // offsets of rows in mem, in words; ordered by slot, then as the source gave them
	starts []uint32 // starts[i]: where in order the rows of local slot i begin
	rows   int

	unit  *unit
	ends  bool // it is the last area of the unit
	err   error
	reads []blockio.Read
	list  []*blockio.Read
}

// loader loads units on a goroutine of its own, one ahead of the merging.
type loader struct {
	s      *spool
	n      uint32 // slots
	plan   loadPlan
	loaded chan *loadArea
	free   chan *loadArea
	done   blockio.Completions
	ready  []*blockio.Read
}

// newLoader divides arena and returns the table of keys as well.
func newLoader(s *spool, plan loadPlan, arena []byte, n uint32) (*loader, []uint32) {
	l := &loader{s: s, n: n, plan: plan, loaded: make(chan *loadArea, 2), free: make(chan *loadArea, 2)}
	take := func(bytes int) []byte {
		b := arena[:bytes:bytes]
		arena = arena[bytes:]
		return b
	}
	blocks := plan.blocks * s.shape.blockBytes
	mems := [2][]byte{take(blocks), take(blocks)} // aligned
	for _, mem := range mems {
		words := offheap.Uint32s(take(int(roundUp(4*int64(plan.rows+plan.locals+1), 4096))))
		l.free <- &loadArea{
			mem: mem, order: words[:plan.rows], starts: words[plan.rows:][:plan.locals+1],
			reads: make([]blockio.Read, plan.blocks),
		}
	}
	return l, offheap.Uint32s(take(4 * keyTable(max(plan.rows, 1))))
}

// run loads all units and closes loaded, or ends with ctx.
func (l *loader) run(ctx context.Context, units []unit) {
	defer close(l.loaded)
	for i := range units {
		u := &units[i]
		for rest := u.blocks; ; {
			var a *loadArea
			select {
			case a = <-l.free:
			case <-ctx.Done():
				return
			}
			n := min(len(rest), l.plan.blocks)
			a.unit, a.ends = u, n == len(rest)
			if a.err = l.load(a, rest[:n]); a.err == nil {
				l.sort(a, rest[:n])
			}
			err := a.err
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

// load reads and checks blocks.
func (l *loader) load(a *loadArea, blocks []spoolBlock) error {
	s := l.s
	// The reads of a device are submitted together.
	for dir, dev := range s.t.devices {
		a.list = a.list[:0]
		for i, b := range blocks {
			if int(b.number)%len(s.t.devices) != dir {
				continue
			}
			r := &a.reads[i]
			*r = blockio.Read{File: s.groupOf(b.part).files[dir], Offset: s.offset(b.number), Buf: a.mem[i*s.shape.blockBytes:][:s.bytesOf(b)], Cookie: uint64(i)}
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

// bytesOf is the length of a block on the device.
func (s *spool) bytesOf(b spoolBlock) int {
	return int(roundUp(int64(spoolHeaderBytes+b.rows*s.entry), 4096))
}

func (s *spool) path(b spoolBlock) string {
	dir := int(b.number) % len(s.t.devices)
	return filepath.Join(s.t.devices[dir].Dir(), s.name(int(s.group(b.part))))
}

func (s *spool) verify(b spoolBlock, buf []byte) error {
	if reason := s.check(buf, b.part, b.number, b.rows); reason != "" {
		return &CorruptionError{File: s.path(b), Offset: s.offset(b.number), Reason: reason}
	}
	return nil
}

func (s *spool) readError(b spoolBlock, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CorruptionError{File: s.path(b), Offset: s.offset(b.number), Reason: "the file ends within a block"}
	}
	return fmt.Errorf("sparsetable: read a spool: %w", err)
}

// read reads and checks one block.
func (s *spool) read(b spoolBlock, buf []byte) error {
	dir := int(b.number) % len(s.t.devices)
	buf = buf[:s.bytesOf(b)]
	if _, err := s.groupOf(b.part).files[dir].ReadAt(buf, s.offset(b.number)); err != nil {
		return s.readError(b, err)
	}
	return s.verify(b, buf)
}

// sort sorts the rows of an area by slot, by counting: it counts the rows of each
// slot, adds up the counts, and puts each row at its place.
func (l *loader) sort(a *loadArea, blocks []spoolBlock) {
	s, u := l.s, a.unit
	n, mask := l.n, uint32(1)<<bits.Len32(l.n)-1
	starts := a.starts[:u.locals(l.n)+1]
	clear(starts)
	each := func(fn func(local uint32, at int)) {
		for i, b := range blocks {
			at := i*s.shape.blockBytes + spoolHeaderBytes
			for range b.rows {
				slot := uint32(s.t.hash.Of(entryKey(a.mem[at:]))) & mask
				if slot >= n {
					slot &= mask >> 1
				}
				fn(u.local(slot), at)
				at += s.entry
			}
		}
	}
	a.rows = 0
	each(func(local uint32, _ int) { starts[local+1]++; a.rows++ })
	// At first starts[i+1] counts the rows of slot i. Then it becomes the place
	// where they begin, and when all rows are placed, the place where they end.
	sum := uint32(0)
	for i := 1; i < len(starts); i++ {
		sum, starts[i] = sum+starts[i], sum
	}
	each(func(local uint32, at int) {
		a.order[starts[local+1]] = uint32(at / 4)
		starts[local+1]++
	})
}
