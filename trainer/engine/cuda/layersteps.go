package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/program"
)

// linear is a layer: product, bias and activation.
func (u *run) linear(r *replica, step int, n int) error {
	s := &u.prog.Steps[step]
	if fused, err := u.fuseLayer(r, step, n); err != nil || fused {
		return err
	}
	if err := u.multiply(r, s, u.product(r, s, n), n); err != nil {
		return err
	}
	y, bias := r.at(s.Out[0]), r.biasOf(s)
	if h, ok := u.alone(r, s.Out[0]); ok {
		return r.kernels.EpilogueBF16(r.compute, activation(s), h, y, bias, n)
	}
	return r.kernels.Epilogue(r.compute, activation(s), y, bias, n)
}

// matMul is dx = dz·wᵀ, perhaps with the derivative of an activation, or dw = xᵀ·dz, perhaps with the
// gradient of the bias.
func (u *run) matMul(r *replica, step int, n int) error {
	s := &u.prog.Steps[step]
	if fused, err := u.fuseDerivative(r, step, n); err != nil || fused {
		return err
	}
	if err := u.multiply(r, s, u.product(r, s, n), n); err != nil {
		return err
	}
	switch {
	case derives(s):
		return u.derive(r, step, r.at(s.Out[0]), n)
	case !biasGradient(s):
		return nil
	}
	sums, from := r.at(s.Out[1]), u.summed[step]
	if from < 0 {
		return r.kernels.ColumnSum(r.compute, sums, r.at(s.In[1]), n, u.workOf(r))
	}
	switch masked, err := u.masked(r, from, n); {
	case err != nil:
		return err
	case masked:
		if h, ok := u.alone(r, s.In[1]); ok {
			return r.kernels.ColumnSumBF16(r.compute, sums, h, n, u.workOf(r))
		}
		return nil // the sums are there
	}
	return r.kernels.FinishSums(r.compute, sums, n, u.chunksOf(r, from, n))
}

// derive multiplies a product by the derivative of an activation.
func (u *run) derive(r *replica, step int, y kernels.Matrix, n int) error {
	s, work := &u.prog.Steps[step], u.chunksOf(r, step, n)
	h, ok := u.alone(r, s.Out[0])
	if !ok {
		return r.kernels.Derive(r.compute, activation(s), y, r.at(s.In[2]), n, work)
	}
	if half, ok := u.alone(r, s.In[2]); ok {
		return r.kernels.DeriveFromBF16(r.compute, activation(s), h, y, half, n, work)
	}
	return r.kernels.DeriveBF16(r.compute, activation(s), h, y, r.at(s.In[2]), n, work)
}

// chunksOf is where a step that derives leaves the sums of chunks of n examples.
func (u *run) chunksOf(r *replica, step, n int) gpu.Region {
	return gpu.Part(r.arena, u.chunks[step], kernels.WorkBytes(n, u.prog.Steps[step].Out[0].Columns))
}

// product is that of a step, for n examples of a device.
func (u *run) product(r *replica, s *program.Step, n int) gpu.Product {
	inputs, outputs, _ := productSize(s)
	p := gpu.Product{
		Precision: u.precisionOf(inputs, outputs), TransA: s.TransA, TransB: s.TransB, M: u.rows(s.Out[0], n), N: s.Out[0].Columns, K: s.In[0].Columns,
		C: r.at(s.Out[0]).Side(),
	}
	if s.TransA {
		p.M, p.K = s.In[0].Columns, u.rows(s.In[0], n)
	}
	for i, side := range []*gpu.Matrix{&p.A, &p.B} {
		if p.Precision == gpu.BF16Product {
			*side = u.halfs[u.halfOf[s.In[i]]].on(r).Side()
		} else {
			*side = r.at(s.In[i]).Side()
		}
	}
	return p
}

// multiply enqueues the product of a step, after its sides are rounded where they must be.
func (u *run) multiply(r *replica, s *program.Step, p gpu.Product, n int) error {
	if p.Precision == gpu.BF16Product {
		for _, v := range s.In[:2] {
			if err := u.round(r, v, u.rows(v, n)); err != nil {
				return err
			}
		}
	}
	return r.compute.Multiply(p)
}

// biasOf is the bias of a layer; the zero Matrix if it has none.
func (r *replica) biasOf(s *program.Step) kernels.Matrix {
	if len(s.In) == 3 {
		return r.at(s.In[2])
	}
	return kernels.Matrix{}
}

// on is where a replica has a value.
func (h *half) on(r *replica) kernels.Half {
	return kernels.Half{Memory: r.arena, Offset: h.at, Columns: h.value.Columns, Stride: h.stride}
}

// round makes a value bfloat16, unless the step that computes it does, or it was made in this run.
func (u *run) round(r *replica, v program.Value, rows int) error {
	i := u.halfOf[v]
	h := &u.halfs[i]
	switch {
	case h.weight >= 0:
		return u.roundWeights(r)
	case h.alone || r.halfs[i] == u.number:
		return nil
	}
	r.halfs[i] = u.number
	return r.kernels.ToBF16(r.compute, h.on(r), r.at(v), rows)
}

// roundWeights makes all parameters bfloat16 or, in inference, their averages.
func (u *run) roundWeights(r *replica) error {
	if r.weights == u.number {
		return nil
	}
	r.weights = u.number
	p := u.e.params
	from := p.value
	if !u.prog.Training() && p.average != nil {
		from = p.average
	}
	all := kernels.Half{Memory: r.arena, Offset: u.weightsAt, Columns: p.values, Stride: p.values}
	return r.kernels.ToBF16(r.compute, all, r.vector(from[p.order[0]], p.values), 1)
}

// alone returns where the step that computes a value writes it in bfloat16; ok tells whether it does.
func (u *run) alone(r *replica, v program.Value) (h kernels.Half, ok bool) {
	if !u.isAlone(v) {
		return h, false
	}
	return u.halfs[u.halfOf[v]].on(r), true
}
