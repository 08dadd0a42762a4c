package cuda

import (
	"fmt"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// run is one run of a program on all devices.
type run struct {
	*execution
	number int // runs are numbered from 1
	slot   int
	parts  []part // of the devices
}

// part is the examples of a device: n of them, from first on.
type part struct{ first, n int }

// take enqueues a piece on one device. Package ops documents what the steps compute.
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
		if to, ok := u.gathered(r, s.Out[0]); ok {
			return k.ToBF16(c, to, in(0), n)
		}
		return k.Copy(c, y, in(0), n)
	case ops.KindLinear:
		return u.linear(r, at.step, n)
	case ops.KindMatMul:
		return u.matMul(r, at.step, p.n)
	case ops.KindColumnSum:
		work := u.workOf(r, at.step, p.n)
		if err := k.ColumnChunks(c, in(0), p.n, work); err != nil {
			return err
		}
		return u.finishSum(r, s.Out[0], y, work, p.n)
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
		return k.NormGamma(c, y, in(0), in(1), in(2), p.n, u.workOf(r, at.step, p.n))
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
		if to, ok := u.gathered(r, s.Out[0]); ok {
			return k.InteractBF16(c, to, in(0), s.Dim, n)
		}
		return k.Interact(c, y, in(0), s.Dim, n)
	case ops.KindInteractGrad:
		return u.interactGrad(r, at.step, n)
	case ops.KindLoss:
		return k.Loss(c, y, in(0), in(1), in(2), r.check(), n)
	case ops.KindLossGrad:
		return k.LossGrad(c, y, in(0), in(1), in(2), u.in.N, n)
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

// activation is the activation of a step. Packages ops and kernels number activations alike.
func activation(s *program.Step) kernels.Activation { return kernels.Activation(s.Activation) }

// pooled copies the pooled rows, which the host has sent, to their buffer.
func (u *run) pooled(r *replica, y kernels.Matrix, n int) error {
	from := kernels.Matrix{Memory: r.slots[u.slot].inputs, Offset: u.inputs(n).pooled, Columns: y.Columns, Stride: y.Columns}
	return r.kernels.Copy(r.compute, y, from, n)
}
