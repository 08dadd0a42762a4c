package cpu

import (
	"math"

	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/program"
)

const (
	// tileExamples is the size of a tile. The activations and gradients of a tile, some 1,500 live
	// columns in the usual networks, fit into a second-level cache of 1 MiB, and products of 256
	// rows run at full speed.
	tileExamples = 256
	// tilesPerThread is the least number of tiles for each thread, so that an interrupted thread
	// does not delay the others much.
	tilesPerThread = 4
	// minTile is the least size of a tile for that purpose.
	minTile = 64
	// blockTiles is the number of tiles per thread in a block of examples.
	blockTiles = 8
)

// Machine runs the programs of a network. One goroutine uses it at a time; it computes on
// kernel.Threads threads.
type Machine struct {
	net   *program.Network
	arena []float32
	train execution
	infer execution
}

// NewMachine returns a machine for net that multiplies matrices in the given precision. It uses the
// memory of net's parameters and of their gradients.
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

// Train runs the network forward and backward over a mini-batch. It overwrites every parameter's
// Grad; RowGrad then returns the gradients of the rows. It updates the running statistics and
// changes no parameter. The error wraps program.ErrNotFinite if the loss or a batch statistic is
// NaN or infinite; then nothing but gradients has changed.
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

// Infer returns the logits (N) of a mini-batch, without dropout, with running statistics in batch
// normalization. It needs no labels. The slice is valid until the next call of the machine. The
// error wraps program.ErrNotFinite if a logit is NaN or infinite.
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

// MemoryBytes returns the number of bytes that the machine has allocated.
func (m *Machine) MemoryBytes() int64 {
	return 4*int64(cap(m.arena)) + m.train.bytes() + m.infer.bytes()
}

// Poison overwrites all that the machine has computed with NaN, so that a test can show that none
// of it reaches the next mini-batch.
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

// ForecastBytes returns how much memory a machine that trains net will allocate for mini-batches of
// n examples.
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
