package cpu

import (
	"aibox/internal/kernel"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/program"
)

// execution runs one program.
type execution struct {
	net       *program.Network
	prog      *program.Program
	precision engine.Precision
	weights   weights

	scratch     scratchPool
	tileColumns int   // elements of a tile's scratch memory, per example
	slots       []int // offset of each slot, in elements per example
	extra       int   // elements of extra scratch memory that a step needs at most

	miniBatch
	division
	tasks
}

// miniBatch is the current mini-batch.
type miniBatch struct {
	n       int // its number of examples
	step    int64
	bags    hostrows.Bags
	offsets []int       // offset in the arena of each inner buffer of scope Block or Batch
	base    [][]float32 // of each buffer; nil for scope Tile
}

// division is how a mini-batch is divided into tiles and blocks.
type division struct {
	tile   int // examples in a tile
	block  int // examples in a block
	lo, hi int // the current block
}

// tasks are the tasks that run on all threads, with their arguments.
type tasks struct {
	stage      program.Stage
	reduction  *program.Step // argument of runColumns
	rectangles []rectangle   // argument of runSums
	// runTiles, runColumns, runSums and runPacking, bound once so that a mini-batch allocates
	// nothing:
	tiles, columns, sums, packing func(lo, hi int)
}

func (e *execution) init(net *program.Network, p *program.Program) {
	e.net, e.prog = net, p
	e.slots = make([]int, len(p.Slots))
	for i, n := range p.Slots {
		e.slots[i] = e.tileColumns
		e.tileColumns += n
	}
	e.offsets = make([]int, len(p.Buffers))
	e.base = make([][]float32, len(p.Buffers))
	for i := range p.Steps {
		e.extra = max(e.extra, extraElements(&p.Steps[i]))
	}
	e.bags.Init(net, p)
	e.weights.init(p)
	e.tiles, e.columns, e.sums, e.packing = e.runTiles, e.runColumns, e.runSums, e.runPacking
}

// cut chooses the sizes of tiles and blocks for n examples. Results do not depend on them, provided
// that blocks begin at even examples, since products in bfloat16 take examples in pairs.
func (e *execution) cut(n int) {
	threads := kernel.Threads()
	e.tile, e.block = tileExamples, n
	if e.prog.Blocks && e.prog.Training() {
		e.block = min(n, threads*blockTiles*tileExamples)
	}
	if want := threads * tilesPerThread; threads > 1 && e.block < want*e.tile {
		e.tile = max(minTile, (e.block/want+15)&^15)
	}
	e.tile = min(e.tile, e.block)
}

// inArena reports whether a buffer lies in the arena.
func inArena(b *program.Buffer) bool {
	return b.Source == program.Inner && (b.Rows == program.Fixed || b.Rows == program.Examples && b.Scope != program.Tile)
}

// place lays out the arena for n examples and returns its size in elements.
func (e *execution) place(n int) int {
	size := 0
	for i, b := range e.prog.Buffers {
		if !inArena(&b) {
			continue
		}
		rows := n
		switch {
		case b.Rows == program.Fixed:
			rows = b.Count
		case b.Scope == program.Block:
			rows = e.block
		}
		e.offsets[i] = size
		size += (rows*b.Stride + lineElements - 1) &^ (lineElements - 1)
	}
	return size
}

// bind assigns memory to the buffers for a mini-batch.
func (e *execution) bind(m *Machine, in *program.Inputs) {
	e.n, e.step = in.N, in.Step
	e.bags.Set(in)
	e.cut(in.N)
	m.arena = grow(m.arena, e.place(in.N))
	for i, b := range e.prog.Buffers {
		var data []float32
		switch b.Source {
		case program.Inner:
			if inArena(&b) {
				data = m.arena[e.offsets[i]:]
			}
		case program.Dense:
			data = in.Dense
		case program.Labels:
			data = in.Labels
		case program.Weights:
			data = in.Weights
		case program.TableRows:
			data = in.Rows
		case program.Param:
			data = e.net.Params[b.Index].Data
		case program.Gradient:
			data = e.net.Params[b.Index].Grad
		case program.Running:
			data = e.net.Norms[b.Index].Both
		}
		e.base[i] = data
	}
}

// run runs all stages over a mini-batch.
func (e *execution) run(m *Machine, in *program.Inputs) {
	e.bind(m, in)
	if e.weights.used = in.N >= packFrom; e.weights.used {
		kernel.Parallel(len(e.weights.steps), 1, e.packing)
	}
	for e.lo = 0; e.lo < in.N; e.lo = e.hi {
		e.hi = min(e.lo+e.block, in.N)
		for _, s := range e.prog.Stages {
			e.stage = s
			if s.RowWise {
				n := e.hi - e.lo
				kernel.Parallel((n+e.tile-1)/e.tile, 1, e.tiles)
				continue
			}
			e.reduceAll(s)
		}
	}
}

// runTiles runs tiles lo to hi of the current block through the current stage.
func (e *execution) runTiles(lo, hi int) {
	s := e.scratch.take(e.tile*e.tileColumns, e.extra)
	for i := lo; i < hi; i++ {
		t := &s.t
		*t = tile{e: e, lo: e.lo + i*e.tile, scratch: s}
		t.n = min(t.lo+e.tile, e.hi) - t.lo
		for i := e.stage.First; i < e.stage.End; i++ {
			t.step(&e.prog.Steps[i])
		}
	}
	e.scratch.put(s)
}

// loss returns the mean of the terms, summed in double precision in the order of the examples.
func (e *execution) loss() float64 {
	terms := e.column(e.prog.Terms)
	total := 0.0
	for _, t := range terms {
		total += float64(t)
	}
	return total / float64(e.n)
}

// column returns the data of a value of scope Batch that has one column.
func (e *execution) column(v program.Value) []float32 {
	return e.base[v.Buffer][v.Column:][:e.n]
}
