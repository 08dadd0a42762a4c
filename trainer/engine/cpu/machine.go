package cpu

import (
	"math"

	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/program"
)

const (
	// tileExamples is the size of a tile. The activations and gradients of a tile of the
	// usual networks, some 1,500 columns that are live at a time, fit into a second-level
	// cache of 1 MiB, and the products of 256 rows run at full speed.
	tileExamples = 256
	// tilesPerThread is how many tiles each thread should get at least, so that threads
	// that are interrupted do not delay the others much.
	tilesPerThread = 4
	// minTile bounds from below how far a mini-batch is cut up for that.
	minTile = 64
	// blockTiles is the number of tiles, for each thread, in a block of examples.
	blockTiles = 8
)

// Machine runs the programs of a network. One goroutine uses it; inside it uses
// kernel.Threads threads.
type Machine struct {
	net   *program.Network
	arena []float32
	train execution
	infer execution
}

// NewMachine returns a machine for net that multiplies matrices in the given precision. It
// shares the memory of net's parameters and of their gradients.
func NewMachine(net *program.Network, precision engine.Precision) *Machine {
	m := &Machine{net: net}
	m.train.init(net, net.Train)
	m.infer.init(net, net.Infer)
	m.train.precision, m.infer.precision = precision, precision
	return m
}

// Result is the result of Train. Its slices are valid until the next call of the machine.
type Result struct {
	Loss   float64   // mean over the examples of weight times negative log-likelihood
	Logits []float32 // (N), of this mini-batch before the update
}

// Train runs the network forward and backward over a mini-batch and fills every
// parameter's Grad, overwriting what was there; RowGrad then returns the gradients of
// the rows. It updates the running statistics and changes no parameter. The error wraps
// program.ErrNotFinite if the loss or a batch statistic is NaN or infinite; then
// nothing has changed but gradients.
func (m *Machine) Train(in *program.Inputs) (result Result, err error) {
	defer panics.Catch("the network", &err)
	if err := in.Check(m.net, true); err != nil {
		return Result{}, err
	}
	e := &m.train
	e.run(m, in)
	loss := e.loss()
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return Result{}, engine.LossError(in.Step, loss)
	}
	if err := e.checkNorms(); err != nil {
		return Result{}, err
	}
	e.updateNorms()
	return Result{Loss: loss, Logits: e.column(e.prog.Logits)}, nil
}

// Infer returns the logits (N) of a mini-batch: no dropout, running statistics in batch
// normalization, no labels needed. The slice is valid until the next call of the machine.
// The error wraps program.ErrNotFinite if a logit is NaN or infinite.
func (m *Machine) Infer(in *program.Inputs) (logits []float32, err error) {
	defer panics.Catch("the network", &err)
	if err := in.Check(m.net, false); err != nil {
		return nil, err
	}
	e := &m.infer
	e.run(m, in)
	logits = e.column(e.prog.Logits)
	for i, z := range logits {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return nil, engine.LogitError(i, z)
		}
	}
	return logits, nil
}

// MemoryBytes is what the machine has allocated.
func (m *Machine) MemoryBytes() int64 {
	return 4*int64(cap(m.arena)) + m.train.bytes() + m.infer.bytes()
}

// Poison overwrites all that the machine has computed with NaN, so that a test can show
// that nothing of it reaches the next mini-batch.
func (m *Machine) Poison() {
	fill := func(x []float32) {
		for i := range x {
			x[i] = float32(math.NaN())
		}
	}
	fill(m.arena[:cap(m.arena)])
	for _, e := range []*execution{&m.train, &m.infer} {
		for _, s := range e.scratch.mu.unused {
			fill(s.tile[:cap(s.tile)])
			fill(s.extra[:cap(s.extra)])
		}
	}
}

// ForecastBytes is what a machine for net that trains will allocate for mini-batches of n
// examples.
func ForecastBytes(net *program.Network, n int) int64 {
	forecast := func(p *program.Program) (arena, scratch int64) {
		var e execution
		e.init(net, p)
		e.cut(n)
		return 4 * int64(e.place(n)), 4*int64(kernel.Threads()*e.tile*e.tileColumns) + e.weights.forecast(p)
	}
	inferArena, inferScratch := forecast(net.Infer)
	arena, scratch := forecast(net.Train)
	return max(arena, inferArena) + scratch + inferScratch
}

// execution runs one program.
type execution struct {
	net       *program.Network
	prog      *program.Program
	precision engine.Precision
	weights   weights

	scratch     scratchPool
	tileColumns int   // elements of a tile's scratch memory for each of its examples
	slots       []int // where each slot begins, in elements for each example
	extra       int   // elements that steps need beside their results

	miniBatch
	division
	tasks
}

// miniBatch is the current one.
type miniBatch struct {
	n       int // its examples
	step    int64
	bags    hostrows.Bags
	offsets []int       // where each inner buffer of scope Block or Batch begins in the arena
	base    [][]float32 // of each buffer; nil for scope Tile
}

// division is how a mini-batch is cut up.
type division struct {
	tile   int // examples in a tile
	block  int // examples in a block
	lo, hi int // the current block
}

// tasks is what runs on all threads.
type tasks struct {
	stage      program.Stage
	reduction  *program.Step // that runColumns works on
	rectangles []rectangle   // that runSums works on
	// runTiles, runColumns, runSums and runPacking, bound once so that a mini-batch allocates nothing:
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

// cut decides about tiles and blocks for n examples. Results do not depend on it; for that,
// blocks begin at even examples, since products in bfloat16 take them by pairs.
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

// inArena says whether a buffer lies in the arena.
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

// bind gives the buffers their memory for a mini-batch.
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

// loss is the mean of the terms, in double precision and in the order of the examples.
func (e *execution) loss() float64 {
	terms := e.column(e.prog.Terms)
	total := 0.0
	for _, t := range terms {
		total += float64(t)
	}
	return total / float64(e.n)
}

// column returns a value of scope Batch with one column.
func (e *execution) column(v program.Value) []float32 {
	return e.base[v.Buffer][v.Column:][:e.n]
}
