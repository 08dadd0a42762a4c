package cpu

import (
	"sync"
	"unsafe"

	"aibox/internal/kernel"
	"aibox/trainer/program"
)

// lineElements is the number of elements in a cache line.
const lineElements = 16

// grow returns a slice of n elements that begins at a cache line. It reuses x if that is large
// enough. The contents are undefined.
func grow(x []float32, n int) []float32 {
	if cap(x) >= n {
		return x[:n]
	}
	x = make([]float32, n+lineElements)
	skip := -int(uintptr(unsafe.Pointer(&x[0]))/4) & (lineElements - 1)
	return x[skip:][:n:n]
}

// matrix is some rows of a value.
type matrix struct {
	data            []float32 // begins with the first element of the first row
	stride, columns int
}

func (m matrix) row(i int) []float32 { return m.data[i*m.stride:][:m.columns] }

// whole returns n rows as one slice if there are no gaps between them, and nil otherwise.
func (m matrix) whole(n int) []float32 {
	if m.stride != m.columns {
		return nil
	}
	return m.data[:n*m.columns]
}

// scratch is the memory of one goroutine, for one tile at a time.
type scratch struct {
	tile    []float32 // the slots
	extra   []float32
	columns []float64 // of normalizations
	t       tile

	gemm     kernel.Scratch
	epilogue kernel.Epilogue

	counted int64 // its bytes that scratchPool.mu.bytes includes
}

// scratchPool keeps as many scratches as were in use at the same time.
type scratchPool struct {
	mu struct {
		sync.Mutex
		unused []*scratch
		bytes  int64 // size of all scratches, as of the time when each was last put back
	}
}

func (p *scratchPool) take(tile, extra int) *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s *scratch
	if last := len(p.mu.unused) - 1; last >= 0 {
		s = p.mu.unused[last]
		p.mu.unused = p.mu.unused[:last]
	} else {
		s = new(scratch)
	}
	s.tile, s.extra = grow(s.tile, tile), grow(s.extra, extra)
	return s
}

func (p *scratchPool) put(s *scratch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := 4*int64(cap(s.tile)+cap(s.extra)) + 8*int64(cap(s.columns)) + int64(s.gemm.Bytes())
	p.mu.bytes += now - s.counted
	s.counted = now
	p.mu.unused = append(p.mu.unused, s)
}

func (e *execution) bytes() int64 {
	e.scratch.mu.Lock()
	defer e.scratch.mu.Unlock()
	return e.scratch.mu.bytes + e.bags.Bytes() + e.weights.bytes()
}

// tile is a tile of examples on its way through a stage.
type tile struct {
	e       *execution
	lo, n   int // its first example, in the mini-batch, and their number
	scratch *scratch
}

// at returns the tile's rows of a value, or the whole value if its rows do not belong to examples.
func (t *tile) at(v program.Value) matrix {
	b := &t.e.prog.Buffers[v.Buffer]
	data := t.e.base[v.Buffer]
	switch {
	case b.Rows != program.Examples:
	case b.Source != program.Inner || b.Scope == program.Batch:
		data = data[t.lo*b.Stride:]
	case b.Scope == program.Block:
		data = data[(t.lo-t.e.lo)*b.Stride:]
	default:
		data = t.scratch.tile[t.e.slots[b.Slot]*t.e.tile:]
	}
	return matrix{data[v.Column:], b.Stride, v.Columns}
}

// optional is like at, for a value that a mini-batch may not have: then the matrix has no data.
func (t *tile) optional(v program.Value) matrix {
	if t.e.base[v.Buffer] == nil {
		return matrix{}
	}
	return t.at(v)
}
