package cuda

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// run is one run of a program on all devices.
type run struct {
	*execution
	number int // counts runs, from 1 on
	slot   int
	parts  []part // of the devices
	total  int    // examples by which the loss is divided
}

// part is the examples of a device.
type part struct{ first, n int }

// take enqueues a piece on one device. What the steps compute is said by package ops.
func (u *run) take(r *replica, p part, at piece) error {
	s := &u.prog.Steps[at.step]
	k, c, n := r.kernels, r.compute, p.n
	var y kernels.Matrix
	if len(s.Out) > 0 {
		y, n = r.at(s.Out[0]), u.rows(s.Out[0], p.n)
	}
	in := func(i int) kernels.Matrix { return r.at(s.In[i]) }
	switch s.Kind {
	case program.KindCopy:
		return k.Copy(c, y, in(0), n)
	case ops.KindLinear:
		return u.linear(r, s, y, n)
	case ops.KindMatMul:
		return u.matMul(r, s, y, p.n)
	case ops.KindColumnSum:
		return k.ColumnSum(c, y, in(0), p.n, u.workOf(r))
	case ops.KindActivate:
		return k.Activate(c, activation(s), y, in(0), n)
	case ops.KindActivateGrad:
		return k.ActivateGrad(c, activation(s), y, in(0), in(1), n)
	case ops.KindBagPool:
		return u.pooled(r, y, n)
	case ops.KindBatchNorm:
		return k.Normalize(c, y, in(0), in(1), in(2), in(3), n)
	case ops.KindBatchStats:
		return u.batchStats(r, p, at)
	case ops.KindBatchNormInput:
		return u.normInput(r, p, at)
	case ops.KindBatchNormGamma:
		return k.NormGamma(c, y, in(0), in(1), in(2), p.n, u.workOf(r))
	case ops.KindBias:
		return k.Bias(c, y, in(0), n)
	case ops.KindColumns:
		return k.Columns(c, y, in(0), s.Period, s.Lo, s.Hi, n)
	case ops.KindSpread:
		return k.Spread(c, y, in(0), s.Period, s.Lo, s.Hi, n)
	case ops.KindCross:
		var bias kernels.Matrix
		if len(s.In) == 4 {
			bias = in(3)
		}
		return k.Cross(c, y, in(0), in(1), in(2), bias, n)
	case ops.KindDropout:
		clock := gpu.Part(r.slots[u.slot].inputs, u.inputs(p.n).clock, 8)
		return k.Dropout(c, kernels.Dropout{Probability: s.Probability, Seed: s.Seed, Layer: s.Layer}, y, in(0), clock, p.first, n)
	case ops.KindFM:
		return k.FM(c, y, in(0), s.Dim, n)
	case ops.KindFMGrad:
		return k.FMGrad(c, y, in(0), in(1), s.Dim, n)
	case ops.KindInteract:
		return k.Interact(c, y, in(0), s.Dim, n)
	case ops.KindInteractGrad:
		return k.InteractGrad(c, y, in(0), in(1), s.Dim, n)
	case ops.KindLoss:
		return k.Loss(c, y, in(0), in(1), in(2), n)
	case ops.KindLossGrad:
		return k.LossGrad(c, y, in(0), in(1), in(2), u.total, n)
	case ops.KindMultiply:
		return k.Multiply(c, y, in(0), in(1), n)
	case ops.KindRepeat:
		return k.Repeat(c, y, in(0), n)
	case ops.KindRowDot:
		return k.RowDot(c, y, in(0), in(1), n)
	case ops.KindRowSum:
		return k.RowSum(c, y, in(0), n)
	case ops.KindScaleVectors:
		return k.ScaleVectors(c, y, in(0), in(1), s.Dim, n)
	case ops.KindScaleVectorsGrad:
		return k.ScaleVectorsGrad(c, y, in(0), in(1), s.Dim, n)
	case ops.KindSum:
		r.terms = r.terms[:0]
		for _, v := range s.In {
			r.terms = append(r.terms, r.at(v))
		}
		return k.Sum(c, y, r.terms, n)
	}
	return fmt.Errorf("cuda: a step of kind %d", s.Kind)
}

// activation is that of a step. The numbers are the same in both packages.
func activation(s *program.Step) kernels.Activation { return kernels.Activation(s.Activation) }

// workOf is the memory for sums over the examples.
func (x *execution) workOf(r *replica) gpu.Region { return gpu.Part(r.arena, x.workAt, x.work) }

// pooled brings the pooled rows, which the host has sent or the devices have pooled, to their place.
func (u *run) pooled(r *replica, y kernels.Matrix, n int) error {
	from := kernels.Matrix{Memory: r.slots[u.slot].inputs, Offset: u.inputs(n).pooled, Columns: y.Columns, Stride: y.Columns}
	if u.e.held != nil {
		from.Memory, from.Offset = r.arena, u.poolAt
	}
	return r.kernels.Copy(r.compute, y, from, n)
}

// linear is a layer: product, bias and activation.
func (u *run) linear(r *replica, s *program.Step, y kernels.Matrix, n int) error {
	if err := u.multiply(r, s, gpu.Product{TransB: s.TransB, M: n, N: y.Columns, K: s.In[0].Columns}, y, n); err != nil {
		return err
	}
	var bias kernels.Matrix
	if len(s.In) == 3 {
		bias = r.at(s.In[2])
	}
	return r.kernels.Epilogue(r.compute, activation(s), y, bias, n)
}

// matMul is dx = dz·wᵀ, perhaps with the derivative of an activation, or dw = xᵀ·dz, perhaps with the
// gradient of the bias.
func (u *run) matMul(r *replica, s *program.Step, y kernels.Matrix, n int) error {
	p := gpu.Product{TransA: s.TransA, TransB: s.TransB, M: n, N: y.Columns, K: s.In[0].Columns}
	if s.TransA {
		p.M, p.K = p.K, n
	}
	if err := u.multiply(r, s, p, y, n); err != nil {
		return err
	}
	switch {
	case s.TransA && len(s.Out) > 1:
		return r.kernels.ColumnSum(r.compute, r.at(s.Out[1]), r.at(s.In[1]), n, u.workOf(r))
	case !s.TransA && len(s.In) > 2:
		return r.kernels.Derive(r.compute, activation(s), y, r.at(s.In[2]), n)
	}
	return nil
}

// productSize returns what engine.Precision.Rounds asks for: the columns of the first operand and of
// the result or, of a gradient of weights, of the other operand.
func (x *execution) productSize(s *program.Step) (inputs, outputs int, ok bool) {
	switch {
	case s.Kind == ops.KindMatMul && s.TransA:
		return s.In[0].Columns, s.In[1].Columns, true
	case s.Kind == ops.KindMatMul, s.Kind == ops.KindLinear:
		return s.In[0].Columns, s.Out[0].Columns, true
	}
	return 0, 0, false
}

// precision is that of a product.
func (x *execution) precision(inputs, outputs int) gpu.Precision {
	switch p := x.e.Precision; {
	case !p.Rounds(inputs, outputs):
		return gpu.Float32Product
	case p == engine.BF16:
		return gpu.BF16Product
	default:
		return gpu.TF32Product
	}
}

// multiply completes the product of a step and enqueues it. A device has n examples.
func (u *run) multiply(r *replica, s *program.Step, p gpu.Product, y kernels.Matrix, n int) error {
	inputs, outputs, _ := u.productSize(s)
	p.Precision = u.precision(inputs, outputs)
	p.C = gpu.Matrix{Memory: y.Memory, Offset: y.Offset, Stride: y.Stride}
	for i, side := range []*gpu.Matrix{&p.A, &p.B} {
		v := s.In[i]
		if p.Precision == gpu.BF16Product {
			var err error
			if *side, err = u.rounded(r, v, u.rows(v, n)); err != nil {
				return err
			}
			continue
		}
		m := r.at(v)
		*side = gpu.Matrix{Memory: m.Memory, Offset: m.Offset, Stride: m.Stride}
	}
	return r.compute.Multiply(p)
}

// rounded returns a value in bfloat16. It is made when the first product of a run needs it.
func (u *run) rounded(r *replica, v program.Value, rows int) (gpu.Matrix, error) {
	i := u.halfOf[v]
	h := &u.halfs[i]
	m := gpu.Matrix{Memory: r.arena, Offset: h.at, Stride: h.stride}
	if r.halfs[i] == u.number {
		return m, nil
	}
	r.halfs[i] = u.number
	return m, r.kernels.ToBF16(r.compute, m, r.at(v), rows)
}
