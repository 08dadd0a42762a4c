package cuda

import (
	"slices"

	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// With small mini-batches the launch latency of dependent operations dominates a step. So where a
// few small steps follow one another, the operation of the first one also does the others. The
// outputs of the joined steps must have memory of their own: a slot of the program
// (execution.layout) may still be in use by a step in between.

// joined says which steps are done by the operation of another step. Maps are keyed by step.
type joined struct {
	by     []int               // of each step: the earlier step whose operation does it; else the step itself
	firsts map[int]firstVector // interaction derivatives that do more

	outputLayers map[int]outputLayer // layers that do more
	outer        map[int]int         // derivatives with only sums left to do: the layer that does the rest
	dots         map[int]bool        // weight gradients whose sums of chunks such a derivative computes
}

// firstVector is the gradient with respect to the input from which the first vector of an
// interaction was computed.
type firstVector struct {
	activation kernels.Activation
	others     program.Value // another gradient of the vector, which is added
	out        program.Value
}

// outputLayer is the numbers of the steps joined with the layer whose one output is the logits.
type outputLayer struct{ loss, gradient, derivative, weights int }

// joinSteps finds the steps that the operations of other steps do.
func (l *layers) joinSteps() {
	l.by, l.firsts = make([]int, len(l.prog.Steps)), map[int]firstVector{}
	l.outputLayers, l.outer, l.dots = map[int]outputLayer{}, map[int]int{}, map[int]bool{}
	for i := range l.by {
		l.by[i] = i
	}
	for i := range l.prog.Steps {
		switch l.prog.Steps[i].Kind {
		case ops.KindInteractGrad:
			l.joinFirst(i)
		case ops.KindLinear:
			l.joinOutput(i)
		}
	}
}

// joinFirst joins the derivative of an interaction with the steps that use the gradient of its
// first vector. In DLRM that vector is the output of the bottom network, which also enters the top
// network beside the interaction. The two gradients are added and go through the derivative of an
// activation.
func (l *layers) joinFirst(i int) {
	s := &l.prog.Steps[i]
	x, dx := s.In[0], s.Out[0]
	x.Columns, dx.Columns = s.Dim, s.Dim
	at := l.onlyReader(dx)
	if at < 0 {
		return
	}
	sum := &l.prog.Steps[at]
	if sum.Kind != ops.KindSum || len(sum.In) != 2 {
		return
	}
	f, steps := firstVector{others: sum.In[0], out: sum.Out[0]}, []int{at}
	if f.others == dx {
		f.others = sum.In[1]
	}
	if at := l.onlyReader(f.out); at >= 0 {
		if a := &l.prog.Steps[at]; a.Kind == ops.KindActivateGrad && a.In[0] == x && a.In[1] == f.out {
			f.activation, f.out, steps = activation(a), a.Out[0], append(steps, at)
		}
	}
	if !l.isWrittenBefore(f.others, i) || !l.hasMemory(f.out) {
		return
	}
	l.firsts[i] = f
	for _, at := range steps {
		l.by[at] = i
	}
}

// joinOutput joins the layer whose one output is the logits with the loss, the derivative of the
// loss, and the gradient of the layer's input, which is the result of an activation. So the input
// is read once. Only sums over the examples are left, which nothing waits for before the end.
func (l *layers) joinOutput(i int) {
	s := &l.prog.Steps[i]
	if !l.prog.Training() || s.Out[0] != l.prog.Logits || s.TransB || activation(s) != kernels.Identity || l.isAlone(s.In[0]) {
		return
	}
	o := outputLayer{loss: -1, gradient: -1, derivative: -1, weights: -1}
	for k := range l.prog.Steps {
		switch s := &l.prog.Steps[k]; {
		case s.Kind == ops.KindLoss && s.In[0] == l.prog.Logits:
			o.loss = k
		case s.Kind == ops.KindLossGrad && s.In[0] == l.prog.Logits:
			o.gradient = k
		}
	}
	if o.loss < 0 || o.gradient < 0 {
		return
	}
	x, w, dz := s.In[0], s.In[1], l.prog.Steps[o.gradient].Out[0]
	for k := range l.prog.Steps {
		switch s := &l.prog.Steps[k]; {
		case derives(s) && s.In[0] == dz && s.In[1] == w && s.In[2] == x:
			o.derivative = k
		case s.Kind == ops.KindMatMul && s.TransA && s.In[0] == x && s.In[1] == dz:
			o.weights = k
		}
	}
	if o.derivative < 0 || o.weights < o.derivative || !l.sumsDots(o.weights) {
		return
	}
	down := l.prog.Steps[o.derivative].Out[0]
	for _, out := range []program.Value{l.prog.Logits, l.prog.Terms, dz, down} {
		if !l.hasMemory(out) && !l.isAlone(out) {
			return
		}
	}
	l.outputLayers[i], l.by[o.loss], l.by[o.gradient] = o, i, i
	l.outer[o.derivative], l.dots[o.weights] = i, true
}

// onlyReader returns the one step that reads a value. It returns -1 if no step reads it, if it is
// read several times or in part, or if it overlaps a result of the program.
func (l *layers) onlyReader(v program.Value) int {
	reader := -1
	for i := range l.prog.Steps {
		for _, in := range l.prog.Steps[i].In {
			if !in.Overlaps(v) {
				continue
			}
			if reader >= 0 || in != v {
				return -1
			}
			reader = i
		}
	}
	if slices.ContainsFunc(l.results(), v.Overlaps) {
		return -1
	}
	return reader
}

// isWrittenBefore reports whether all steps that write any part of a value come before step i.
func (l *layers) isWrittenBefore(v program.Value, i int) bool {
	for k := i; k < len(l.prog.Steps); k++ {
		if slices.ContainsFunc(l.prog.Steps[k].Out, v.Overlaps) {
			return false
		}
	}
	return true
}

// hasMemory reports whether the buffer of a value shares its memory with no other buffer.
func (l *layers) hasMemory(v program.Value) bool {
	b := &l.prog.Buffers[v.Buffer]
	return b.Source == program.Inner && b.Rows == program.Examples && b.Scope != program.Tile
}

// interactGrad is the derivative of an interaction, with the steps that joinFirst has joined to it.
func (u *run) interactGrad(r *replica, step, n int) error {
	s := &u.prog.Steps[step]
	dx, x, dy := r.at(s.Out[0]), r.at(s.In[0]), r.at(s.In[1])
	f, ok := u.firsts[step]
	if !ok {
		return r.kernels.InteractGrad(r.compute, dx, x, dy, s.Dim, n)
	}
	first := kernels.FirstVector{Activation: f.activation, Others: r.at(f.others), Gradient: r.at(f.out)}
	if i, ok := u.halfOf[f.out]; ok {
		first.Half = u.padded(r, i)
		r.halfs[i] = u.number
	}
	return r.kernels.InteractGradFirst(r.compute, dx.Slice(s.Dim, dx.Columns), first, x, dy, s.Dim, n)
}

// outputOf describes a layer with one output, and the steps joined with it, for package kernels.
func (u *run) outputOf(r *replica, layer int) *kernels.Output {
	s, o := &u.prog.Steps[layer], u.outputLayers[layer]
	loss := &u.prog.Steps[o.loss]
	return &kernels.Output{
		X: r.at(s.In[0]), W: r.at(s.In[1]), Bias: r.biasOf(s), Activation: activation(&u.prog.Steps[o.derivative]),
		Labels: r.at(loss.In[1]), Weights: r.at(loss.In[2]), Check: r.check(), Total: u.in.N,
		Logits: r.at(s.Out[0]), Terms: r.at(loss.Out[0]), Gradient: r.at(u.prog.Steps[o.gradient].Out[0]),
	}
}

// output enqueues a layer with one output, with the loss and the derivatives.
func (u *run) output(r *replica, layer int, n int) error {
	o, down := u.outputOf(r, layer), u.prog.Steps[u.outputLayers[layer].derivative].Out[0]
	if h, ok := u.alone(r, down); ok {
		return r.kernels.OutputBF16(r.compute, o, h, n)
	}
	return r.kernels.Output(r.compute, o, r.at(down), n)
}

// outputSums enqueues the sums over the examples that output leaves to do.
func (u *run) outputSums(r *replica, layer int, n int) error {
	o := u.outputLayers[layer]
	return r.kernels.OutputSums(r.compute, u.outputOf(r, layer), n, u.workOf(r, o.weights, n), u.workOf(r, o.derivative, n))
}
