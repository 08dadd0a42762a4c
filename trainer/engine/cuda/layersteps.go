package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// linear is a layer: product, bias and activation.
func (u *run) linear(r *replica, step int, n int) error {
	s := &u.prog.Steps[step]
	if _, ok := u.outputLayers[step]; ok {
		return u.output(r, step, n)
	}
	if err := u.fillPad(r, s, n); err != nil {
		return err
	}
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

// matMul is dx = dz·wᵀ, optionally times the derivative of an activation, or dw = xᵀ·dz, optionally
// with the gradient of the bias.
func (u *run) matMul(r *replica, step int, n int) error {
	s := &u.prog.Steps[step]
	if derives(s) {
		return u.derive(r, step, n)
	}
	if err := u.gradient(r, step, n); err != nil || !biasGradient(s) {
		return err
	}
	sums := r.at(s.Out[1])
	if from := u.summed[step]; from >= 0 {
		return u.finishSum(r, s.Out[1], sums, u.workOf(r, from, n), n)
	}
	work := u.biasWorkOf(r, step, n)
	if err := r.kernels.ColumnChunks(r.compute, r.at(s.In[1]), n, work); err != nil {
		return err
	}
	return u.finishSum(r, s.Out[1], sums, work, n)
}

// gradient is dw = xᵀ·dz, or dx = dz·wᵀ without a derivative.
func (u *run) gradient(r *replica, step, n int) error {
	s := &u.prog.Steps[step]
	if u.sumsDots(step) {
		work := u.workOf(r, step, n)
		if !u.dots[step] {
			if err := r.kernels.DotChunks(r.compute, r.at(s.In[0]), r.at(s.In[1]), n, work); err != nil {
				return err
			}
		}
		dw := r.at(s.Out[0])
		dw.Columns = s.In[0].Columns
		return u.finishSum(r, s.Out[0], dw, work, n)
	}
	return u.multiply(r, s, u.product(r, s, n), n)
}

// sumsDots reports whether a step is the gradient of a single, contiguous column of weights. It is
// then computed as a sum of columns.
func (l *layers) sumsDots(step int) bool {
	s := &l.prog.Steps[step]
	return s.Kind == ops.KindMatMul && s.TransA && s.Out[0].Columns == 1 && l.prog.Buffers[s.Out[0].Buffer].Stride == 1
}

// derive is a product times the derivative of an activation, element by element.
func (u *run) derive(r *replica, step int, n int) error {
	if layer, ok := u.outer[step]; ok {
		return u.outputSums(r, layer, n)
	}
	s, work := &u.prog.Steps[step], u.workOf(r, step, n)
	a, dx, y := activation(s), r.at(s.Out[0]), r.at(s.In[2])
	h, alone := u.alone(r, s.Out[0])
	half, fromHalf := u.alone(r, s.In[2])
	switch outer := s.In[0].Columns == 1 && !fromHalf; {
	case outer && alone:
		return r.kernels.DeriveOuterBF16(r.compute, a, h, r.at(s.In[0]), r.at(s.In[1]), y, n, work)
	case outer:
		return r.kernels.DeriveOuter(r.compute, a, dx, r.at(s.In[0]), r.at(s.In[1]), y, n, work)
	}
	p := u.product(r, s, n)
	rounds := alone && p.Precision == gpu.BF16Product
	if rounds {
		p.Round, p.C = true, h.Side()
	}
	if err := u.multiply(r, s, p, n); err != nil {
		return err
	}
	if alone && !rounds {
		if err := r.kernels.ToBF16(r.compute, h, dx, n); err != nil {
			return err
		}
	}
	switch {
	case alone && fromHalf:
		return r.kernels.DeriveFromBF16(r.compute, a, h, half, n, work)
	case alone:
		return r.kernels.DeriveBF16(r.compute, a, h, y, n, work)
	}
	return r.kernels.Derive(r.compute, a, dx, y, n, work)
}

// product returns the product of a step, for n examples of a device.
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
			*side = u.half(r, u.halfOf[s.In[i]]).Side()
		} else {
			*side = r.at(s.In[i]).Side()
		}
	}
	u.pad(s, &p)
	return p
}

// multiply enqueues the product of a step. In bfloat16 it first rounds the operands.
func (u *run) multiply(r *replica, s *program.Step, p gpu.Product, n int) error {
	if p.Precision == gpu.BF16Product {
		for _, v := range s.In[:2] {
			if err := u.round(r, v, n); err != nil {
				return err
			}
		}
	}
	return r.compute.Multiply(p)
}

// biasOf returns the bias of a layer; the zero Matrix if it has none.
func (r *replica) biasOf(s *program.Step) kernels.Matrix {
	if len(s.In) == 3 {
		return r.at(s.In[2])
	}
	return kernels.Matrix{}
}

// half returns where a replica has halfs[i].
func (u *run) half(r *replica, i int) kernels.Half {
	h := &u.halfs[i]
	m := kernels.Half{Memory: r.arena, Offset: h.at, Columns: h.value.Columns, Stride: h.stride}
	switch {
	case h.weight >= 0:
		m.Memory, m.Offset = r.state, u.rounded()+u.e.params.value[h.weight]/2
	case i == u.dense:
		m.Memory, m.Offset = r.slots[u.slot].inputs, r.dense
	}
	return m
}

// rounded is the offset of all parameters in bfloat16 or, in inference, of their averages.
func (u *run) rounded() int {
	if u.prog.Training() {
		return u.e.params.rounded
	}
	return u.e.params.roundedAverage
}

// padded is half with the padding columns, which are to become zeros: see padding.go.
func (u *run) padded(r *replica, i int) kernels.Half {
	m := u.half(r, i)
	m.Columns = m.Stride
	return m
}

// round converts a value to bfloat16, unless it is a parameter or the dense features, the step that
// computes it writes bfloat16, or this run has already converted it.
func (u *run) round(r *replica, v program.Value, n int) error {
	i := u.halfOf[v]
	h := &u.halfs[i]
	if h.weight >= 0 || i == u.dense || h.alone || r.halfs[i] == u.number {
		return nil
	}
	r.halfs[i] = u.number
	return r.kernels.ToBF16(r.compute, u.padded(r, i), r.at(v), u.halfRows(v, n))
}

// alone returns where a value that exists in bfloat16 alone is written; ok reports whether it is
// one.
func (u *run) alone(r *replica, v program.Value) (h kernels.Half, ok bool) {
	if !u.isAlone(v) {
		return h, false
	}
	return u.half(r, u.halfOf[v]), true
}
