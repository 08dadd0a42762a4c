package cuda

import (
	"slices"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/optim"
)

// A launch takes microseconds, however little it does. So one launch does all updates of the same
// optim.Group whose values are adjacent in memory, with gradients, state and averages in the same
// order (see parameters). The alignment gaps between parameters are updated too. They begin as
// zeros and stay zeros: every formula maps a value, gradient and state of 0 to 0, since it divides
// by a positive number (at least Epsilon).
//
// Which updates share a launch depends on their groups alone, not on the constants of a step.
// Groups can only change before an Import, so graphs (graphs.go) stay valid.

// together is updates that share a launch. Their values begin with the first value of first.
type together struct {
	first  *optim.Update
	values int // with the gaps between parameters
}

// updating is the parameters, and how the current step updates them.
type updating struct {
	params    *parameters
	updates   []together
	constants []float32 // of updates, then of the update of averages
}

// prepareUpdates sets the updates of a step and their constants.
func (e *Engine) prepareUpdates(step int64, scale float32) {
	d := e.state.Dense
	e.updates = e.params.join(e.updates[:0], d.Updates(step, scale))
	e.constants = e.constants[:0]
	for i := range e.updates {
		e.constants = kernels.AppendUpdate(e.constants, &e.updates[i].first.Update)
	}
	if u, has := d.Averager(step); has {
		e.constants = kernels.AppendUpdate(e.constants, &u)
	}
}

// join appends the updates of a step to joined, those of one launch together. updates is sorted by
// parameter.
func (p *parameters) join(joined []together, updates []optim.Update) []together {
	for _, param := range p.order {
		at, _ := slices.BinarySearchFunc(updates, param, func(u optim.Update, param int) int { return u.Param - param })
		for ; at < len(updates) && updates[at].Param == param; at++ {
			u := &updates[at]
			if last := len(joined) - 1; last < 0 || joined[last].first.Group != u.Group {
				joined = append(joined, together{first: u})
			}
			t := &joined[len(joined)-1]
			t.values = p.value[param]/4 + u.Hi - p.value[t.first.Param]/4 - t.first.Lo
		}
	}
	return joined
}

// probe is a number behind the last gradients that is all-reduced with them: the sum of the loss
// terms times 0. It is 0 if all terms are finite, else NaN.
func (e *Engine) probe(r *replica) kernels.Matrix { return r.vector(e.params.probe, 1) }

// writeProbe enqueues the computation of a device's probe.
func (e *Engine) writeProbe(j *job, r *replica, p part) error {
	zero := kernels.Matrix{Memory: r.small, Offset: checkAt, Columns: 1, Stride: 1}
	zeros := kernels.Matrix{Memory: r.arena, Offset: j.zerosAt, Columns: 1, Stride: 1}
	if err := r.kernels.ScaleVectors(r.compute, zeros, r.at(j.prog.Terms), zero, 1, p.n); err != nil {
		return err
	}
	work := gpu.Part(r.arena, j.zerosAt+devicememory.Aligned(4*j.n), kernels.WorkBytes(p.n, 1))
	return r.kernels.ColumnSum(r.compute, e.probe(r), zeros, p.n, work)
}

// flagNotFinite sets a device's flag if a loss term of any device, or a batch statistic, is not finite.
func (e *Engine) flagNotFinite(j *job, r *replica, p part) error {
	terms, rows := r.at(j.prog.Terms), p.n
	if e.group != nil {
		terms, rows = e.probe(r), 1
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
}

// update updates parameters, averages and running statistics, unless the flag is set.
func (e *Engine) update(j *job, r *replica, share part) error {
	p := e.params
	constants := func(i int) gpu.Region {
		return gpu.Part(r.slots[j.slot].inputs, j.inputs(share.n).constants+i*kernels.UpdateBytes, kernels.UpdateBytes)
	}
	for i := range e.updates {
		u := e.updates[i].first
		part := func(at int) kernels.Matrix { return r.vector(at+4*u.Lo, e.updates[i].values) }
		r.terms = r.terms[:0]
		for _, at := range p.slots[u.Param] {
			r.terms = append(r.terms, part(at))
		}
		if err := r.kernels.Optimize(r.compute, r.flag(), r.check(), constants(i), u.Formula, part(p.value[u.Param]), part(p.grad[u.Param]),
			r.half(p.rounded, p.value[u.Param]+4*u.Lo, e.updates[i].values), r.terms...); err != nil {
			return err
		}
	}
	if averager, has := p.dense.Averager(j.step); has && len(p.order) > 0 {
		first := p.order[0]
		averages, values := r.vector(p.average[first], p.values), r.vector(p.value[first], p.values)
		if err := r.kernels.Optimize(r.compute, r.flag(), r.check(), constants(len(e.updates)), averager.Formula, averages, values, r.half(p.roundedAverage, 0, p.values)); err != nil {
			return err
		}
	}
	for i, v := range j.prog.Stats {
		running := kernels.Matrix{Memory: r.state, Offset: p.running[i], Columns: v.Columns, Stride: v.Columns}
		if err := r.kernels.UpdateRunning(r.compute, running, r.at(v), j.in.N, r.flag()); err != nil {
			return err
		}
	}
	return nil
}
