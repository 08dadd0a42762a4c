package cuda

import (
	"slices"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Layers are matrix products followed by element-wise work. Moving the bytes of that work takes a
// device as long as the products, so it is done in as few passes over memory as possible:
//
//   - The bias and the activation of a layer are one pass.
//   - In the backward pass, the derivative of the activation and the sums of chunks of its result,
//     which the gradient of the bias needs, are one pass (kernels.Derive).
//   - Where only products in bfloat16 use a result, that pass rounds it, and no float32 of it is
//     written. The same holds for an interaction and the copies beside it that together are the
//     input of a layer.
//   - Parameters are rounded by their updates. Dense features are rounded when they arrive, in the
//     upload stream or, with rows on the devices, in the stream of rows.
//   - Where the device supports it, a product adds the bias and applies ReLU before it writes its
//     elements (gpu.Epilogue).
//   - A layer with one output has two products in the backward pass at which the library is slow.
//     That of a column and a row is part of the pass that derives; that of a matrix and a column is
//     a sum of columns.

// layers is how the layers of a program are computed.
type layers struct {
	precision  engine.Precision
	prog       *program.Program
	halfs      []half
	halfOf     map[program.Value]int
	summed     []int                  // of each step that computes the gradient of a bias: the step that left sums of chunks; else -1
	padInputs  map[program.Value]bool // inputs of layers: whether they are padded
	padWeights map[int]int            // by parameter, of padded weights: how many zeros follow them
	weights    bool                   // halfs has parameters
	dense      int                    // index in halfs of the dense features; -1: not in it
	joined
}

// half is a value that products use in bfloat16.
type half struct {
	value  program.Value
	stride int
	at     int  // in the arena
	alone  bool // the step that computes the value writes no float32 of it
	weight int  // the parameter, if it is one, which its updates round; else -1
}

func (l *layers) init(precision engine.Precision, p *program.Program) {
	l.precision, l.prog, l.halfOf, l.dense = precision, p, map[program.Value]int{}, -1
	l.summed = make([]int, len(p.Steps))
	derived := map[program.Value]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		l.summed[i] = -1
		if derives(s) {
			derived[s.Out[0]] = i
		}
		if l.rounds(s) {
			l.round(s.In[0])
			l.round(s.In[1])
		}
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; biasGradient(s) {
			if from, ok := derived[s.In[1]]; ok && from < i {
				l.summed[i] = from
			}
		}
	}
	for i := range l.halfs {
		l.halfs[i].alone = l.inner(l.halfs[i].value)
	}
	for changed := true; changed; { // whether one is alone depends on the others
		changed = false
		for i := range l.halfs {
			if h := &l.halfs[i]; h.alone && !l.suffices(h.value) {
				h.alone, changed = false, true
			}
		}
	}
	l.findPads()
	l.joinSteps()
}

// isAlone reports whether the step that computes a value writes no float32 of it.
func (l *layers) isAlone(v program.Value) bool {
	i, ok := l.halfOf[v]
	return ok && l.halfs[i].alone
}

// round notes that a product needs a value in bfloat16.
func (l *layers) round(v program.Value) {
	if _, ok := l.halfOf[v]; ok {
		return
	}
	h := half{value: v, stride: (v.Columns + 7) &^ 7, weight: -1}
	switch b := &l.prog.Buffers[v.Buffer]; {
	case v.Columns != b.Columns:
	case b.Source == program.Param && h.stride == b.Stride:
		h.weight, l.weights = b.Index, true
	case b.Source == program.Dense:
		l.dense = len(l.halfs)
	}
	l.halfOf[v] = len(l.halfs)
	l.halfs = append(l.halfs, h)
}

// derives reports whether a step multiplies its product by the derivative of an activation.
func derives(s *program.Step) bool { return s.Kind == ops.KindMatMul && !s.TransA && len(s.In) > 2 }

// biasGradient reports whether a step computes the gradient of a bias beside its product.
func biasGradient(s *program.Step) bool {
	return s.Kind == ops.KindMatMul && s.TransA && len(s.Out) > 1
}

// completes reports whether a pass over the result follows the product of a step.
func completes(s *program.Step) bool {
	return derives(s) || s.Kind == ops.KindLinear && (len(s.In) == 3 || activation(s) != kernels.Identity)
}

// gathers reports whether a step that writes some of the columns of v can write them in bfloat16.
// An interaction must write the last columns, since it fills those behind them, up to a multiple of
// 8, with zeros.
func gathers(s *program.Step, v program.Value) bool {
	return s.Kind == program.KindCopy || s.Kind == ops.KindInteract && s.Out[0].Column+s.Out[0].Columns == v.Columns
}

// gathered returns where a step writes its columns of a larger value that exists in bfloat16 alone;
// ok reports whether out belongs to such a value.
func (u *run) gathered(r *replica, out program.Value) (to kernels.Half, ok bool) {
	for i := range u.halfs {
		h := &u.halfs[i]
		if !h.alone || h.value.Buffer != out.Buffer {
			continue
		}
		to = u.half(r, i)
		to.Offset += 2 * out.Column
		if to.Columns = out.Columns; out.Column+out.Columns == h.value.Columns {
			to.Columns = h.stride - out.Column // see padding.go
		}
		return to, true
	}
	return to, false
}

// inner reports whether a value is a whole inner buffer that only steps read.
func (l *layers) inner(v program.Value) bool {
	b := &l.prog.Buffers[v.Buffer]
	if b.Source != program.Inner || v.Columns != b.Columns {
		return false
	}
	return !slices.ContainsFunc(l.results(), func(r program.Value) bool { return r.Columns > 0 && r.Buffer == v.Buffer })
}

// results returns the values that are read outside the program. Absent ones have no columns.
func (l *layers) results() []program.Value {
	return append([]program.Value{l.prog.Logits, l.prog.Terms, l.prog.Pooled}, l.prog.Stats...)
}

// suffices reports whether all steps that write or read a value can use bfloat16.
func (l *layers) suffices(v program.Value) bool {
	for i := range l.prog.Steps {
		s := &l.prog.Steps[i]
		for k, out := range s.Out {
			if out.Buffer == v.Buffer && !(k == 0 && completes(s) && out == v) && !gathers(s, v) {
				return false
			}
		}
		for k, in := range s.In {
			if in.Buffer == v.Buffer && (in != v || !l.takes(i, k)) {
				return false
			}
		}
	}
	return true
}

// takes reports whether step i can read operand k in bfloat16.
func (l *layers) takes(i, k int) bool {
	s := &l.prog.Steps[i]
	switch {
	case derives(s) && k == 2: // these derivatives depend only on the sign of y
		return l.isAlone(s.Out[0]) && activation(s) <= kernels.LeakyReLU
	case !l.rounds(s) || k > 1:
		return false
	}
	return !biasGradient(s) || k == 0 || l.summed[i] >= 0
}

// productSize returns the arguments of engine.Precision.Rounds: the columns of the first operand,
// and those of the result or, for a gradient of weights, of the second operand.
func productSize(s *program.Step) (inputs, outputs int, ok bool) {
	switch {
	case s.Kind == ops.KindMatMul && s.TransA:
		return s.In[0].Columns, s.In[1].Columns, true
	case s.Kind == ops.KindMatMul, s.Kind == ops.KindLinear:
		return s.In[0].Columns, s.Out[0].Columns, true
	}
	return 0, 0, false
}

// rounds reports whether a step is a product of bfloat16.
func (l *layers) rounds(s *program.Step) bool {
	inputs, outputs, ok := productSize(s)
	return ok && l.precisionOf(inputs, outputs) == gpu.BF16Product
}

// precisionOf is the precision of a product of this size.
func (l *layers) precisionOf(inputs, outputs int) gpu.Precision {
	switch {
	case !l.precision.Rounds(inputs, outputs):
		return gpu.Float32Product
	case l.precision == engine.BF16:
		return gpu.BF16Product
	default:
		return gpu.TF32Product
	}
}
