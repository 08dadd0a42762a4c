package cpu

import (
	"fmt"

	"aibox/internal/errkind"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/program"
)

// Engine implements engine.Engine.
type Engine struct {
	engine.Config
	state   *engine.State
	machine *Machine
	rows    *hostrows.Rows
	in      program.Inputs
	result  engine.Result
}

// New returns an engine that starts from state and works on it.
func New(c engine.Config, state *engine.State) (*Engine, error) {
	if c.Precision == engine.TF32 {
		return nil, &PrecisionError{c.Precision}
	}
	return &Engine{Config: c, state: state, machine: NewMachine(c.Network, c.Precision), rows: hostrows.New(c, state)}, nil
}

// PrecisionError says that only devices have products in a precision.
type PrecisionError struct{ Precision engine.Precision }

func (e *PrecisionError) Error() string {
	return fmt.Sprintf("engine.precision: the CPU cannot multiply matrices in %v, only CUDA devices can; choose %v or %v", e.Precision, engine.Float32, engine.BF16)
}

// ErrorKind sorts the error for exit codes and reports.
func (e *PrecisionError) ErrorKind() errkind.Kind { return errkind.Job }

// Begin implements engine.Engine.
func (e *Engine) Begin(p engine.Pass) error {
	e.rows.Begin(p)
	return nil
}

// Announce implements engine.Engine. The rows are used where they are.
func (e *Engine) Announce(engine.Pass) error { return nil }

// Withdraw implements engine.Engine.
func (e *Engine) Withdraw() {}

// End implements engine.Engine.
func (e *Engine) End() error {
	e.rows.End()
	e.in, e.result = program.Inputs{}, engine.Result{}
	return nil
}

// Import implements engine.Engine. The engine works on the state itself.
func (e *Engine) Import() error { return nil }

// Export implements engine.Engine.
func (e *Engine) Export() error { return nil }

// Train implements engine.Engine.
func (e *Engine) Train(b engine.Batch, done engine.Done) error {
	s := e.state
	res, err := e.machine.Train(e.inputs(b, e.rows.Collect(b.Batch), s.Step+1))
	if err != nil {
		return engine.BatchError(s.Step+1, err)
	}
	s.Step++
	scale := e.Schedule.Multiplier(s.Step - s.FirstStep)
	s.Dense.Step(s.Step, scale)
	if err := e.rows.Update(&e.machine.train.bags, e.machine.train.pooledGrad(), scale); err != nil {
		return err
	}
	e.result = engine.Result{Batch: b.Batch, Step: s.Step, Loss: res.Loss, Logits: res.Logits}
	return done(&e.result)
}

// Infer implements engine.Engine.
func (e *Engine) Infer(b engine.Batch, done engine.Done) error {
	rows := e.rows.Gather(b.Batch)
	if e.state.Dense != nil {
		e.state.Dense.SwapAverages()
		defer e.state.Dense.SwapAverages()
	}
	logits, err := e.machine.Infer(e.inputs(b, rows, e.state.Step))
	if err != nil {
		return err
	}
	e.result = engine.Result{Batch: b.Batch, Step: e.state.Step, Logits: logits}
	return done(&e.result)
}

func (e *Engine) inputs(b engine.Batch, rows []float32, step int64) *program.Inputs {
	e.in = b.Inputs(rows, step)
	return &e.in
}

// Check implements engine.Engine.
func (e *Engine) Check() error {
	for _, p := range e.Network.Params {
		if !engine.Finite(p.Data) {
			return engine.UpdateError(fmt.Sprintf("parameter %s", p.Name), e.state.Step)
		}
	}
	if e.state.Dense == nil {
		return nil
	}
	for i, p := range e.Network.Params {
		for _, slot := range e.state.Dense.Slots(i) {
			if !engine.Finite(slot) {
				return engine.OptimizerError(fmt.Sprintf("parameter %s", p.Name), e.state.Step)
			}
		}
	}
	return nil
}

// MemoryBytes implements engine.Engine.
func (e *Engine) MemoryBytes() int64 { return e.machine.MemoryBytes() + e.rows.Bytes() }
