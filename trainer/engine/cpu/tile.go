package cpu

import (
	"fmt"

	"aibox/internal/kernel"
	"aibox/internal/splitmix"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// step runs one step over the tile. Package ops defines what the steps compute, and in which order
// of operations.
func (t *tile) step(s *program.Step) {
	var y matrix
	if len(s.Out) > 0 {
		y = t.at(s.Out[0])
	}
	switch s.Kind {
	case program.KindCopy:
		x := t.at(s.In[0])
		for i := range t.n {
			copy(y.row(i), x.row(i))
		}
	case ops.KindLinear:
		t.linear(s, y)
	case ops.KindMatMul:
		t.product(s, y)
	case ops.KindActivate:
		x := t.at(s.In[0])
		for i := range t.n {
			copy(y.row(i), x.row(i))
		}
		t.activate(s.Activation, y)
	case ops.KindActivateGrad:
		t.activateGrad(s.Activation, y, t.at(s.In[0]), t.at(s.In[1]))
	case ops.KindBagPool:
		t.e.bags.Pool(t.lo, t.n, y.data, y.stride, t.at(s.In[0]).data)
	case ops.KindBatchNorm:
		t.normalize(y, t.at(s.In[0]), t.at(s.In[1]).row(0), t.at(s.In[2]).row(0), t.at(s.In[3]))
	case ops.KindBatchNormInput:
		t.normalizeGrad(s, y)
	case ops.KindBias:
		b := t.at(s.In[0]).data[0]
		for i := range t.n {
			y.row(i)[0] = b
		}
	case ops.KindColumns:
		t.columns(s, y, t.at(s.In[0]))
	case ops.KindSpread:
		t.spread(s, y, t.at(s.In[0]))
	case ops.KindCross:
		t.cross(s, y)
	case ops.KindDropout:
		t.dropout(s, y, t.at(s.In[0]))
	case ops.KindFM:
		t.factorize(s, y, t.at(s.In[0]))
	case ops.KindFMGrad:
		t.factorizeGrad(s, y, t.at(s.In[0]), t.at(s.In[1]))
	case ops.KindInteract:
		t.interact(s, y, t.at(s.In[0]))
	case ops.KindInteractGrad:
		t.interactGrad(s, y, t.at(s.In[0]), t.at(s.In[1]))
	case ops.KindLoss:
		t.loss(y, t.at(s.In[0]), t.at(s.In[1]), t.optional(s.In[2]))
	case ops.KindLossGrad:
		t.lossGrad(y, t.at(s.In[0]), t.at(s.In[1]), t.optional(s.In[2]))
	case ops.KindMultiply:
		t.multiply(y, t.at(s.In[0]), t.at(s.In[1]))
	case ops.KindRepeat:
		x := t.at(s.In[0])
		for i := range t.n {
			row, v := y.row(i), x.row(i)[0]
			for j := range row {
				row[j] = v
			}
		}
	case ops.KindRowDot:
		a, b := t.at(s.In[0]), t.at(s.In[1])
		for i := range t.n {
			y.row(i)[0] = kernel.Dot(a.row(i), b.row(i))
		}
	case ops.KindRowSum:
		x := t.at(s.In[0])
		for i := range t.n {
			y.row(i)[0] = kernel.Sum(x.row(i))
		}
	case ops.KindScaleVectors, ops.KindScaleVectorsGrad:
		t.scaleVectors(s, y, t.at(s.In[0]), t.at(s.In[1]))
	case ops.KindSum:
		x := t.at(s.In[0])
		for i := range t.n {
			copy(y.row(i), x.row(i))
		}
		for _, v := range s.In[1:] {
			x := t.at(v)
			for i := range t.n {
				kernel.Add(y.row(i), x.row(i))
			}
		}
	default:
		panic(fmt.Sprintf("cpu: a step of kind %d", s.Kind))
	}
}

// linear computes a layer: product, bias and activation.
func (t *tile) linear(s *program.Step, y matrix) {
	var bias []float32
	if len(s.In) == 3 {
		bias = t.at(s.In[2]).row(0)
	}
	act, fused := epilogues[s.Activation]
	t.multiplyWeights(s, y, kernel.Epilogue{Bias: bias, Activation: act})
	if !fused {
		t.activate(s.Activation, y)
	}
}

// product computes dx = dz·wᵀ, perhaps times the derivative of an activation.
func (t *tile) product(s *program.Step, dx matrix) {
	if len(s.In) < 3 {
		t.multiplyWeights(s, dx, kernel.Epilogue{})
		return
	}
	y := t.at(s.In[2])
	act, fused := epilogues[s.Activation]
	if fused {
		t.multiplyWeights(s, dx, kernel.Epilogue{Derivative: act, Output: y.data, OutputStride: y.stride})
		return
	}
	t.multiplyWeights(s, dx, kernel.Epilogue{})
	t.activateGrad(s.Activation, dx, y, dx)
}

// epilogues are the activations that a matrix product can apply itself.
var epilogues = map[ops.Activation]kernel.Activation{
	ops.Identity: kernel.ActivationNone, ops.ReLU: kernel.ActivationRelu,
	ops.Tanh: kernel.ActivationTanh, ops.Sigmoid: kernel.ActivationSigmoid,
}

// multiplyWeights computes the matrix product of a step.
func (t *tile) multiplyWeights(s *program.Step, c matrix, e kernel.Epilogue) {
	a := t.at(s.In[0])
	// The epilogue is kept in the scratch memory so that it does not escape to the heap.
	t.scratch.epilogue = e
	if packed := t.e.packed(s); packed != nil {
		t.scratch.gemm.GemmPacked(false, t.n, a.data, a.stride, packed, false, &t.scratch.epilogue, c.data, c.stride)
		return
	}
	b := t.at(s.In[1])
	if t.e.precision.Rounds(a.columns, c.columns) {
		t.scratch.gemm.GemmBF16(false, s.TransB, t.n, c.columns, a.columns, a.data, a.stride, b.data, b.stride, false, &t.scratch.epilogue, c.data, c.stride)
		return
	}
	t.scratch.gemm.Gemm(false, s.TransB, t.n, c.columns, a.columns, a.data, a.stride, b.data, b.stride, false, &t.scratch.epilogue, c.data, c.stride)
}

func (t *tile) activate(a ops.Activation, y matrix) {
	if a == ops.Identity {
		return
	}
	if all := y.whole(t.n); all != nil {
		a.Apply(all)
		return
	}
	for i := range t.n {
		a.Apply(y.row(i))
	}
}

func (t *tile) activateGrad(a ops.Activation, dx, y, dy matrix) {
	if dx, y, dy := dx.whole(t.n), y.whole(t.n), dy.whole(t.n); dx != nil && y != nil && dy != nil {
		a.Gradient(dx, y, dy)
		return
	}
	for i := range t.n {
		a.Gradient(dx.row(i), y.row(i), dy.row(i))
	}
}

func (t *tile) columns(s *program.Step, y, x matrix) {
	width := s.Hi - s.Lo
	for i := range t.n {
		in, out := x.row(i), y.row(i)
		if width == 1 {
			for g := range out {
				out[g] = in[g*s.Period+s.Lo]
			}
			continue
		}
		for g, at := s.Lo, 0; at < len(out); g, at = g+s.Period, at+width {
			copy(out[at:at+width], in[g:])
		}
	}
}

func (t *tile) spread(s *program.Step, dx, dy matrix) {
	width := s.Hi - s.Lo
	for i := range t.n {
		in, out := dy.row(i), dx.row(i)
		clear(out)
		if width == 1 {
			for g, v := range in {
				out[g*s.Period+s.Lo] = v
			}
			continue
		}
		for g, at := s.Lo, 0; at < len(in); g, at = g+s.Period, at+width {
			copy(out[g:g+width], in[at:])
		}
	}
}

func (t *tile) cross(s *program.Step, y matrix) {
	x0, z, xl := t.at(s.In[0]), t.at(s.In[1]), t.at(s.In[2])
	var bias []float32
	if len(s.In) == 4 {
		bias = t.at(s.In[3]).row(0)
	}
	for i := range t.n {
		x0, xl, out := x0.row(i), xl.row(i)[:y.columns], y.row(i)[:y.columns]
		x0 = x0[:y.columns]
		switch {
		case z.columns == y.columns:
			kernel.MulThenAdd(out, x0, z.row(i)[:y.columns], xl)
		case bias == nil:
			z := z.row(i)[0]
			for j, v := range x0 {
				out[j] = float32(v*z) + xl[j]
			}
		default:
			z, bias := z.row(i)[0], bias[:y.columns]
			for j, v := range x0 {
				out[j] = float32(v*z) + bias[j] + xl[j]
			}
		}
	}
}

func (t *tile) multiply(z, x, y matrix) {
	for i := range t.n {
		out, x, y := z.row(i), x.row(i), y.row(i)
		if len(y) == len(x) {
			kernel.Mul(out, x, y)
		} else {
			kernel.ScaleTo(out, y[0], x)
		}
	}
}

func (t *tile) dropout(s *program.Step, y, x matrix) {
	stream := splitmix.Next(splitmix.Next(splitmix.Next(s.Seed)+uint64(s.Layer)) + uint64(t.e.step))
	// A hash drops its element when its upper 32 bits are below the threshold.
	threshold := uint64(s.Probability * (1 << 32))
	scale := float32(1 / (1 - s.Probability))
	for i := range t.n {
		first := stream + uint64((t.lo+i)*y.columns)
		in, out := x.row(i), y.row(i)
		for j, v := range in {
			if splitmix.Next(first+uint64(j))>>32 < threshold {
				out[j] = 0
			} else {
				out[j] = v * scale
			}
		}
	}
}

// loss computes the weighted terms of the loss.
func (t *tile) loss(terms, z, y, w matrix) {
	out, logits := terms.data[:t.n], t.column(z)
	kernel.SoftplusSlice(out, logits)
	for i, v := range out {
		term := v - float32(y.data[i]*logits[i])
		if w.data != nil {
			term *= w.data[i]
		}
		out[i] = term
	}
}

func (t *tile) lossGrad(dz, z, y, w matrix) {
	scale := 1 / float32(t.e.n)
	out := dz.data[:t.n]
	kernel.SigmoidSlice(out, t.column(z))
	for i, p := range out {
		d := p - y.data[i]
		if w.data != nil {
			d *= w.data[i]
		}
		out[i] = d * scale
	}
}

// column returns the tile's rows of a matrix of one column, without gaps.
func (t *tile) column(x matrix) []float32 {
	if x.stride == 1 {
		return x.data[:t.n]
	}
	out := t.scratch.extra[:t.n]
	for i := range out {
		out[i] = x.data[i*x.stride]
	}
	return out
}
