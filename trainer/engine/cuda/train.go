package cuda

import (
	"math"

	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/engine/hostrows"
)

// Train implements engine.Engine.
func (e *Engine) Train(b engine.Batch, done engine.Done) (err error) {
	defer e.ranges.EndRange(e.ranges.StartRange("step"))
	defer e.leave(&err)
	defer panics.Catch("the engine", &err)
	if e.held != nil {
		return e.trainHeld(b, done)
	}
	if err := e.deliver(); err != nil {
		return err
	}
	j, scale, err := e.beginTraining(b, done)
	if err != nil {
		return err
	}
	j.in.Rows = e.gather(b, e.rows.Collect)
	if err := e.enqueue(j); err != nil {
		return e.fail(err)
	}
	loss, logits, err := e.results(j)
	if err != nil {
		return err
	}
	if err := e.updateRows(j, scale); err != nil {
		return e.fail(err)
	}
	e.result = engine.Result{Batch: b.Batch, Step: j.step, Loss: loss, Logits: logits}
	return done(&e.result)
}

// beginTraining begins the next training step and sends all inputs that do not depend on rows.
// scale multiplies the learning rates of the step.
func (e *Engine) beginTraining(b engine.Batch, done engine.Done) (j *job, scale float32, err error) {
	s := e.state
	step := s.Step + 1
	scale = e.Schedule.Multiplier(step - s.FirstStep)
	e.prepareUpdates(step, scale)
	if j, err = e.begin(&e.train, b, done, step); err != nil {
		return nil, 0, e.fail(err)
	}
	j.in = b.Inputs(nil, step)
	if err := j.in.CheckFor(e.Network, len(b.Rows), true); err != nil {
		return nil, 0, engine.BatchError(step, err)
	}
	if err := e.sendDense(j); err != nil {
		return nil, 0, e.fail(err)
	}
	return j, scale, nil
}

// updateRows updates the rows of a job on the host, which completes its step.
func (e *Engine) updateRows(j *job, scale float32) error {
	defer e.ranges.EndRange(e.ranges.StartRange("update rows"))
	width := j.net.Fields * j.net.RowDim
	grads, err := numbers(e.pinned.outputs[j.slot], j.outputs(j.in.N).pooled, j.in.N*width)
	if err != nil {
		return err
	}
	e.state.Step = j.step
	return e.rows.Update(&j.bags, hostrows.Gradients{Data: grads, Stride: width}, scale)
}

// enqueue enqueues everything in a training step that needs the values of rows.
func (e *Engine) enqueue(j *job) error {
	j.bags.Set(&j.in)
	if err := e.sendPooled(j); err != nil {
		return err
	}
	if err := e.computeStep(j); err != nil {
		return err
	}
	return e.finish(j)
}

// computeStep enqueues a training step: its program, the all-reduce of gradients, and the update of
// parameters.
func (e *Engine) computeStep(j *job) error {
	if err := e.compute(j); err != nil {
		return err
	}
	if err := e.addUpGradients(j); err != nil || e.updatesEarly(j) {
		return err
	}
	defer e.ranges.EndRange(e.ranges.StartRange("update"))
	return e.segment(j, len(j.segments))
}

// checkFinite returns the loss of a job: the mean of its terms, summed in double precision in the order
// of the examples. It returns an error if the loss or a batch statistic is not finite. The devices
// detect the same themselves: see flagNotFinite.
func (e *Engine) checkFinite(j *job) (loss float64, err error) {
	out, l := e.pinned.outputs[j.slot], j.outputs(j.batch.N)
	terms, err := numbers(out, l.terms, j.batch.N)
	if err != nil {
		return 0, err
	}
	for _, t := range terms {
		loss += float64(t)
	}
	loss /= float64(j.batch.N)
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, engine.LossError(j.step, loss)
	}
	at := l.stats
	for i, v := range j.prog.Stats {
		stats, err := numbers(out, at, 2*v.Columns)
		if err != nil {
			return 0, err
		}
		if !engine.Finite(stats) {
			return 0, engine.StatisticsError(&e.Network.Norms[i])
		}
		at += devicememory.Aligned(8 * v.Columns)
	}
	return loss, nil
}
