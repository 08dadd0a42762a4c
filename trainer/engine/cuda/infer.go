package cuda

import (
	"math"

	"aibox/internal/panics"
	"aibox/trainer/engine"
)

// Infer implements engine.Engine. The result is delivered by the next call.
func (e *Engine) Infer(b engine.Batch, done engine.Done) (err error) {
	defer e.ranges.EndRange(e.ranges.StartRange("infer"))
	defer e.leave(&err)
	defer panics.Catch("the engine", &err)
	j, err := e.begin(&e.infer, b, done, e.state.Step)
	if err != nil {
		return e.fail(err)
	}
	j.in = b.Inputs(nil, e.state.Step)
	j.in.Labels, j.in.Weights = nil, nil
	if err := j.in.CheckFor(e.Network, len(b.Rows), false); err != nil {
		return err
	}
	if err := e.sendDense(j); err != nil {
		return e.fail(err)
	}
	send := e.sendPooled
	if e.held == nil {
		j.in.Rows = e.gather(b, e.rows.Gather)
		j.bags.Set(&j.in)
	} else {
		send = e.sendBags
	}
	for _, do := range []func(*job) error{send, e.compute, e.finish} {
		if err := do(j); err != nil {
			return e.fail(err)
		}
	}
	if e.held != nil {
		if err := e.held.Progress(); err != nil {
			return e.fail(err)
		}
	}
	before := e.pending
	e.pending = j
	return e.deliverJob(before)
}

// deliver delivers the pending result, if there is one.
func (e *Engine) deliver() error {
	j := e.pending
	e.pending = nil
	return e.deliverJob(j)
}

// deliverJob delivers the result of a job, if there is one.
func (e *Engine) deliverJob(j *job) error {
	if j == nil {
		return nil
	}
	if e.err != nil {
		return e.err
	}
	loss, logits, err := e.results(j)
	if err != nil {
		return err
	}
	if j.prog.Training() {
		if err := e.checkRows(j); err != nil {
			return err
		}
	} else {
		for i, z := range logits {
			if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
				return engine.LogitError(i, z)
			}
		}
	}
	e.result = engine.Result{Batch: j.batch.Batch, Step: j.step, Loss: loss, Logits: logits}
	return j.done(&e.result)
}
