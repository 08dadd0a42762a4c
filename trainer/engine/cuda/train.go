package cuda

import (
	"math"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/engine/hostrows"
	"aibox/trainer/optim"
)

// Train implements engine.Engine.
func (e *Engine) Train(b engine.Batch, done engine.Done) (err error) {
	defer func() { e.stopped = e.stopped || err != nil }()
	defer panics.Catch("the engine", &err)
	if err := e.deliver(); err != nil {
		return err
	}
	s := e.state
	step := s.Step + 1
	scale := e.Schedule.Multiplier(step - s.FirstStep)
	updates := e.prepareUpdates(step, scale)
	j, err := e.begin(&e.train, b, done, step)
	if err != nil {
		return e.fail(err)
	}
	// The values of the rows follow.
	j.in = b.Inputs(nil, step)
	if err := j.in.CheckFor(e.Network, len(b.Rows), true); err != nil {
		return engine.BatchError(step, err)
	}
	if err := e.sendDense(j); err != nil {
		return e.fail(err)
	}
	j.in.Rows = e.rows.Collect(b.Batch)
	if err := e.enqueue(j, updates); err != nil {
		return e.fail(err)
	}
	if err := e.wait(j); err != nil {
		return e.fail(err)
	}
	loss, err := e.judge(j)
	if err != nil {
		return e.fail(engine.BatchError(step, err))
	}
	out, l := e.slots[j.slot].outputs, j.outputs(b.N)
	width := e.Network.Fields * e.Network.RowDim
	grads, err := numbers(out, l.pooled, b.N*width)
	if err != nil {
		return e.fail(err)
	}
	logits, err := numbers(out, l.logits, b.N)
	if err != nil {
		return e.fail(err)
	}
	s.Step = step
	if err := e.rows.Update(&j.bags, hostrows.Gradients{Data: grads, Stride: width}, scale); err != nil {
		return e.fail(err)
	}
	e.result = engine.Result{Batch: b.Batch, Step: step, Loss: loss, Logits: logits}
	return done(&e.result)
}

// enqueue enqueues all of a step of training that needs the values of rows.
func (e *Engine) enqueue(j *job, updates []optim.Update) error {
	j.bags.Set(&j.in)
	if err := e.sendPooled(j); err != nil {
		return err
	}
	if err := e.compute(j); err != nil {
		return err
	}
	if err := e.flag(j); err != nil {
		return err
	}
	if err := e.update(j, updates); err != nil {
		return err
	}
	return e.finish(j)
}

// judge returns the loss of a job, the mean of the terms in double precision and in the order of the examples, or
// says what is not finite. The devices find the same: see flag.
func (e *Engine) judge(j *job) (loss float64, err error) {
	out, l := e.slots[j.slot].outputs, j.outputs(j.in.N)
	terms, err := numbers(out, l.terms, j.in.N)
	if err != nil {
		return 0, err
	}
	for _, t := range terms {
		loss += float64(t)
	}
	loss /= float64(j.total)
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
		at += aligned(8 * v.Columns)
	}
	return loss, nil
}

// flag adds up the gradients over the devices, and sets the flag of each if a loss term of any one, or a
// batch statistic, is not finite. The terms of others arrive with the gradients as the
// probe: the sum of the terms times 0, which is 0 or NaN.
func (e *Engine) flag(j *job) error {
	probe := func(r *replica) kernels.Matrix { return r.vector(e.params.probe, 1) }
	if e.group != nil {
		if err := j.onEach(func(r *replica, p part) error {
			zero := kernels.Matrix{Memory: r.small, Offset: zeroAt, Columns: 1, Stride: 1}
			zeros := kernels.Matrix{Memory: r.arena, Offset: j.zerosAt, Columns: 1, Stride: 1}
			if err := r.kernels.ScaleVectors(r.compute, zeros, r.at(j.prog.Terms), zero, 1, p.n); err != nil {
				return err
			}
			return r.kernels.ColumnSum(r.compute, probe(r), zeros, p.n, j.workOf(r))
		}); err != nil {
			return err
		}
		if err := j.addUp(func(r *replica) gpu.Region { return r.gradients(e.params) }); err != nil {
			return err
		}
	}
	return j.onEach(func(r *replica, p part) error {
		terms, rows := r.at(j.prog.Terms), p.n
		if e.group != nil {
			terms, rows = probe(r), 1
		}
		if err := r.kernels.Finite(r.compute, r.flag(), terms, rows); err != nil {
			return err
		}
		for _, v := range j.prog.Stats {
			if err := r.kernels.Finite(r.compute, r.flag(), r.at(v), 2); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepareUpdates returns the updates of parameters in a step, and keeps their constants.
func (e *Engine) prepareUpdates(step int64, scale float32) []optim.Update {
	d := e.state.Dense
	updates := d.Updates(step, scale)
	e.constants = e.constants[:0]
	for i := range updates {
		e.constants = kernels.AppendUpdate(e.constants, &updates[i].Update)
	}
	if u, has := d.Averager(step); has {
		e.constants = kernels.AppendUpdate(e.constants, &u)
	}
	e.updates = len(e.constants) * 4 / kernels.UpdateBytes
	return updates
}

// update enqueues the update of parameters, averages and running statistics. It does nothing where the flag is
// set.
func (e *Engine) update(j *job, updates []optim.Update) error {
	p := e.params
	averager, averaged := e.state.Dense.Averager(j.step)
	return j.onEach(func(r *replica, share part) error {
		constants := func(i int) gpu.Region {
			return gpu.Part(r.slots[j.slot].inputs, j.inputs(share.n).constants+i*kernels.UpdateBytes, kernels.UpdateBytes)
		}
		for i := range updates {
			u := &updates[i]
			part := func(at int) kernels.Matrix { return r.vector(at+4*u.Lo, u.Hi-u.Lo) }
			r.terms = r.terms[:0]
			for _, at := range p.slots[u.Param] {
				r.terms = append(r.terms, part(at))
			}
			if err := r.kernels.Optimize(r.compute, r.flag(), constants(i), u.Formula, part(p.value[u.Param]), part(p.grad[u.Param]), r.terms...); err != nil {
				return err
			}
		}
		if averaged {
			for i, param := range p.net.Params {
				n := len(param.Data)
				if err := r.kernels.Optimize(r.compute, r.flag(), constants(len(updates)), averager.Formula, r.vector(p.average[i], n), r.vector(p.value[i], n)); err != nil {
					return err
				}
			}
		}
		for i, v := range j.prog.Stats {
			running := kernels.Matrix{Memory: r.state, Offset: p.running[i], Columns: v.Columns, Stride: v.Columns}
			if err := r.kernels.UpdateRunning(r.compute, running, r.at(v), j.in.N, r.flag()); err != nil {
				return err
			}
		}
		return nil
	})
}
