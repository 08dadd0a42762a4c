package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Layers are products with element-wise work behind them. That reads and writes as many bytes as a device moves in the
// time of the products, so it is done in as few passes over memory as there can be:
//
//   - bias and activation of a layer are one;
//   - so are, on the way back, the derivative of the activation and what is needed for the gradient of the bias, the sums
//     of chunks of its result (kernels.Derive);
//   - where products alone use a result, and in bfloat16, that pass rounds it, and there is no float32 of it;
//   - all parameters are rounded at once.

// layers is how the layers of a program are computed.
type layers struct {
	precision engine.Precision
	prog      *program.Program
	halfs     []half
	halfOf    map[program.Value]int
	summed    []int // of each step that computes the gradient of a bias: the step that left sums of chunks; else -1
	chunks    []int // of each step that derives: where its sums of chunks lie in the arena
	weights   bool  // some of halfs are parameters
	weightsAt int   // in the arena: where all parameters lie in bfloat16
}

// half is a value that products use in bfloat16.
type half struct {
	value  program.Value
	stride int
	at     int  // in the arena
	alone  bool // the step that computes the value writes no float32 of it
	weight int  // the parameter that it is, which is rounded with all others; else -1
}

func (l *layers) init(precision engine.Precision, p *program.Program) {
	l.precision, l.prog, l.halfOf = precision, p, map[program.Value]int{}
	l.summed, l.chunks = make([]int, len(p.Steps)), make([]int, len(p.Steps))
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
	for changed := true; changed; { // whether one is alone depends on whether others are
		changed = false
		for i := range l.halfs {
			if h := &l.halfs[i]; h.alone && !l.suffices(h.value) {
				h.alone, changed = false, true
			}
		}
	}
}

// round notes that a product needs a value in bfloat16. Values whose operands are not
// of this kind do not occur.
func (l *layers) round(v program.Value) {
	if _, ok := l.halfOf[v]; ok {
		return
	}
	h := half{value: v, stride: (v.Columns + 7) &^ 7, weight: -1}
	if b := &l.prog.Buffers[v.Buffer]; b.Source == program.Param && v.Columns == b.Columns && h.stride == b.Stride {
		h.weight, l.weights = b.Index, true
	}
	l.halfOf[v] = len(l.halfs)
	l.halfs = append(l.halfs, h)
}

// derives tells whether a step multiplies its product by the derivative of an activation.
func derives(s *program.Step) bool { return s.Kind == ops.KindMatMul && !s.TransA && len(s.In) > 2 }

// biasGradient tells whether a step sums up columns beside its product.
func biasGradient(s *program.Step) bool {
	return s.Kind == ops.KindMatMul && s.TransA && len(s.Out) > 1
}

// completes tells whether a pass over the result follows the product of a step.
func completes(s *program.Step) bool {
	return derives(s) || s.Kind == ops.KindLinear && (len(s.In) == 3 || activation(s) != kernels.Identity)
}

// inner tells whether a value is a whole buffer that nobody but steps looks at.
func (l *layers) inner(v program.Value) bool {
	b := &l.prog.Buffers[v.Buffer]
	if b.Source != program.Inner || v.Columns != b.Columns {
		return false
	}
	for _, result := range append([]program.Value{l.prog.Logits, l.prog.Terms, l.prog.Pooled}, l.prog.Stats...) {
		if result.Columns > 0 && result.Buffer == v.Buffer {
			return false
		}
	}
	return true
}

// suffices tells whether all steps that have to do with a value can do with bfloat16.
func (l *layers) suffices(v program.Value) bool {
	for i := range l.prog.Steps {
		s := &l.prog.Steps[i]
		for k, out := range s.Out {
			if out.Buffer == v.Buffer && (k > 0 || !completes(s)) {
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

// takes tells whether step i can do with bfloat16 for operand k.
func (l *layers) takes(i, k int) bool {
	s := &l.prog.Steps[i]
	switch {
	case derives(s) && k == 2: // the derivative depends on no more than the sign
		h, ok := l.halfOf[s.Out[0]]
		return ok && l.halfs[h].alone && activation(s) <= kernels.LeakyReLU
	case !l.rounds(s) || k > 1:
		return false
	}
	return !biasGradient(s) || k == 0 || l.summed[i] >= 0
}

// productSize returns what engine.Precision.Rounds asks for: the columns of the first operand and of
// the result or, of a gradient of weights, of the other operand.
func productSize(s *program.Step) (inputs, outputs int, ok bool) {
	switch {
	case s.Kind == ops.KindMatMul && s.TransA:
		return s.In[0].Columns, s.In[1].Columns, true
	case s.Kind == ops.KindMatMul, s.Kind == ops.KindLinear:
		return s.In[0].Columns, s.Out[0].Columns, true
	}
	return 0, 0, false
}

// rounds tells whether a step is a product of bfloat16.
func (l *layers) rounds(s *program.Step) bool {
	inputs, outputs, ok := productSize(s)
	return ok && l.precisionOf(inputs, outputs) == gpu.BF16Product
}

// precisionOf is that of a product.
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

// linear is a layer: product, bias and activation.
func (u *run) linear(r *replica, step int, y kernels.Matrix, n int) error {
	s := &u.prog.Steps[step]
	if err := u.multiply(r, s, gpu.Product{TransB: s.TransB, M: n, N: y.Columns, K: s.In[0].Columns}, y, n); err != nil {
		return err
	}
	var bias kernels.Matrix
	if len(s.In) == 3 {
		bias = r.at(s.In[2])
	}
	if h, ok := u.alone(r, s.Out[0]); ok {
		return r.kernels.EpilogueBF16(r.compute, activation(s), h, y, bias, n)
	}
	return r.kernels.Epilogue(r.compute, activation(s), y, bias, n)
}

// matMul is dx = dz·wᵀ, perhaps with the derivative of an activation, or dw = xᵀ·dz, perhaps with the
// gradient of the bias.
func (u *run) matMul(r *replica, step int, y kernels.Matrix, n int) error {
	s := &u.prog.Steps[step]
	p := gpu.Product{TransA: s.TransA, TransB: s.TransB, M: n, N: y.Columns, K: s.In[0].Columns}
	if s.TransA {
		p.M, p.K = p.K, n
	}
	if err := u.multiply(r, s, p, y, n); err != nil {
		return err
	}
	switch {
	case derives(s):
		return u.derive(r, step, y, n)
	case !biasGradient(s):
		return nil
	}
	if from := u.summed[step]; from >= 0 {
		return r.kernels.FinishSums(r.compute, r.at(s.Out[1]), n, u.chunksOf(r, from, n))
	}
	return r.kernels.ColumnSum(r.compute, r.at(s.Out[1]), r.at(s.In[1]), n, u.workOf(r))
}

// derive multiplies a product by the derivative of an activation.
func (u *run) derive(r *replica, step int, y kernels.Matrix, n int) error {
	s, work := &u.prog.Steps[step], u.chunksOf(r, step, n)
	h, ok := u.alone(r, s.Out[0])
	if !ok {
		return r.kernels.Derive(r.compute, activation(s), y, r.at(s.In[2]), n, work)
	}
	if i, ok := u.halfOf[s.In[2]]; ok && u.halfs[i].alone {
		return r.kernels.DeriveFromBF16(r.compute, activation(s), h, y, u.halfs[i].on(r), n, work)
	}
	return r.kernels.DeriveBF16(r.compute, activation(s), h, y, r.at(s.In[2]), n, work)
}

// chunksOf is where a step that derives leaves the sums of chunks of n examples.
func (u *run) chunksOf(r *replica, step, n int) gpu.Region {
	return gpu.Part(r.arena, u.chunks[step], kernels.WorkBytes(n, u.prog.Steps[step].Out[0].Columns))
}

// multiply completes the product of a step and enqueues it. A device has n examples.
func (u *run) multiply(r *replica, s *program.Step, p gpu.Product, y kernels.Matrix, n int) error {
	inputs, outputs, _ := productSize(s)
	p.Precision = u.precisionOf(inputs, outputs)
	p.C = gpu.Matrix{Memory: y.Memory, Offset: y.Offset, Stride: y.Stride}
	for i, side := range []*gpu.Matrix{&p.A, &p.B} {
		v := s.In[i]
		if p.Precision == gpu.BF16Product {
			h, err := u.rounded(r, v, u.rows(v, n))
			if err != nil {
				return err
			}
			*side = gpu.Matrix{Memory: h.Memory, Offset: h.Offset, Stride: h.Stride}
			continue
		}
		m := r.at(v)
		*side = gpu.Matrix{Memory: m.Memory, Offset: m.Offset, Stride: m.Stride}
	}
	return r.compute.Multiply(p)
}

// on is where a replica has a value.
func (h *half) on(r *replica) kernels.Half {
	return kernels.Half{Memory: r.arena, Offset: h.at, Columns: h.value.Columns, Stride: h.stride}
}

// rounded returns a value in bfloat16. Unless the step that computes it makes it, the first product of a run that
// needs it does.
func (u *run) rounded(r *replica, v program.Value, rows int) (kernels.Half, error) {
	i := u.halfOf[v]
	h := &u.halfs[i]
	made := &r.halfs[i]
	if h.weight >= 0 {
		made = &r.weights
	}
	m, x := h.on(r), r.at(v)
	if h.alone || *made == u.number {
		return m, nil
	}
	*made = u.number
	if h.weight < 0 {
		return m, r.kernels.ToBF16(r.compute, m, x, rows)
	}
	p := u.e.params
	all := r.vector(x.Offset-p.value[h.weight], p.values) // or, in inference, their averages
	return m, r.kernels.ToBF16(r.compute, kernels.Half{Memory: r.arena, Offset: u.weightsAt, Columns: p.values, Stride: p.values}, all, 1)
}

// alone returns where the step that computes a value writes it in bfloat16; ok tells whether it does.
func (u *run) alone(r *replica, v program.Value) (h kernels.Half, ok bool) {
	i, ok := u.halfOf[v]
	if !ok || !u.halfs[i].alone {
		return h, false
	}
	return u.halfs[i].on(r), true
}
