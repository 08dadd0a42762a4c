package cpu

import (
	"fmt"
	"math"

	"aibox/internal/kernel"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/program"
)

// Engine implements engine.Engine.
type Engine struct {
	engine.Config
	state   *engine.State
	machine *Machine
	pass    engine.Pass
	rows    batchRows
	decay   rowDecay
	in      program.Inputs
	result  engine.Result

	// The parts of a step that run on all threads, bound once so that a step allocates
	// nothing:
	collectTask, gatherTask, updateTask func(lo, hi int)
}

// New returns an engine that starts from state and works on it.
func New(c engine.Config, state *engine.State) *Engine {
	e := &Engine{Config: c, state: state, machine: NewMachine(c.Network, c.Precision)}
	e.decay = newRowDecay(state.Decay, c.Rows)
	e.collectTask, e.gatherTask, e.updateTask = e.collectRows, e.gatherRows, e.updateRows
	return e
}

// Begin implements engine.Engine.
func (e *Engine) Begin(p engine.Pass) error {
	e.pass = p
	return nil
}

// End implements engine.Engine.
func (e *Engine) End() error {
	e.pass, e.in, e.result = engine.Pass{}, program.Inputs{}, engine.Result{}
	return nil
}

// Import implements engine.Engine. The engine works on the state itself.
func (e *Engine) Import() error { return nil }

// Export implements engine.Engine.
func (e *Engine) Export() error { return nil }

// Train implements engine.Engine.
func (e *Engine) Train(b engine.Batch, done engine.Done) error {
	s := e.state
	e.rows.reset(b.Batch, e.Layout.ValueDim)
	e.decay.until(s.Step)
	kernel.Parallel(len(b.Rows), rowGrain, e.collectTask)
	res, err := e.machine.Train(e.inputs(b, s.Step+1))
	if err != nil {
		return fmt.Errorf("mini-batch of step %d: %w", s.Step+1, err)
	}
	s.Step++
	scale := e.Schedule.Multiplier(s.Step - s.FirstStep)
	s.Dense.Step(s.Step, scale)
	s.RowSteps.Prepare(b.Batch, e.Rows, s.Step, scale)
	e.decay.next()
	e.rows.rounding = sparsetable.NewRounding(e.Seed, uint64(s.Step))
	kernel.Parallel(len(b.Rows), rowGrain, e.updateTask)
	if i := e.rows.overflowed.Load(); i > 0 {
		return e.overflow(fmt.Sprintf("the row of key %x", e.pass.Keys[b.Rows[i-1]]))
	}
	e.result = engine.Result{Batch: b.Batch, Step: s.Step, Loss: res.Loss, Logits: res.Logits}
	return done(&e.result)
}

// Infer implements engine.Engine.
func (e *Engine) Infer(b engine.Batch, done engine.Done) error {
	e.rows.reset(b.Batch, e.Layout.ValueDim)
	e.decay.until(e.state.Step)
	kernel.Parallel(len(b.Rows), rowGrain, e.gatherTask)
	if e.state.Dense != nil {
		e.state.Dense.SwapAverages()
		defer e.state.Dense.SwapAverages()
	}
	logits, err := e.machine.Infer(e.inputs(b, e.state.Step))
	if err != nil {
		return err
	}
	e.result = engine.Result{Batch: b.Batch, Step: e.state.Step, Logits: logits}
	return done(&e.result)
}

func (e *Engine) inputs(b engine.Batch, step int64) *program.Inputs {
	e.in = program.Inputs{
		N: b.N, Total: b.Total, Rows: e.rows.values, Offsets: b.Offsets, Index: b.Index, BagWeights: b.BagWeights,
		RowStarts: b.RowStarts, RowBags: b.RowBags, RowWeights: b.RowWeights,
		Dense: b.Dense, Labels: b.Labels, Weights: b.Weights, Step: step,
	}
	return &e.in
}

// Check implements engine.Engine.
func (e *Engine) Check() error {
	for _, p := range e.Network.Params {
		if !finite(p.Data) {
			return e.overflow("parameter " + p.Name)
		}
	}
	return nil
}

func (e *Engine) overflow(what string) error {
	return fmt.Errorf("%w: %s after the update of step %d; lower the learning rate, or look for extreme dense features", program.ErrNotFinite, what, e.state.Step)
}

func finite(x []float32) bool {
	const exponent = 0x7f800000 // all ones: infinite or NaN
	for _, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}

// MemoryBytes implements engine.Engine.
func (e *Engine) MemoryBytes() int64 { return e.machine.MemoryBytes() + e.rows.bytes() }
