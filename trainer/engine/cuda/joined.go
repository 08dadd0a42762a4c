package cuda

import (
	"slices"

	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// With small mini-batches a step takes as long as operations that wait for one another take to start. So where a few steps follow one
// another that do little, the operation of the first one does what the others do, too. What it writes for them must have memory of
// its own: what shares the slots of the program (execution.layout) may still be in use by a step between.

// joined is which steps are done by the operations of others.
type joined struct {
	by     []int               // of each step: an earlier one whose operation does it, too; else the step itself
	firsts map[int]firstVector // of derivatives of interactions that do more
}

// firstVector is the gradient of what the first vector of an interaction was computed of.
type firstVector struct {
	activation kernels.Activation
	others     program.Value // another gradient of the vector, which is added
	out        program.Value
}

// joinSteps finds the steps that others do, too.
func (l *layers) joinSteps() {
	l.by, l.firsts = make([]int, len(l.prog.Steps)), map[int]firstVector{}
	for i := range l.by {
		l.by[i] = i
	}
	for i := range l.prog.Steps {
		if l.prog.Steps[i].Kind == ops.KindInteractGrad {
			l.joinFirst(i)
		}
	}
}

// joinFirst joins the derivative of an interaction with what is done with the gradient of its first vector: in DLRM that is the result of the
// bottom network, which also enters the top network beside the interaction. The two gradients are added, and go through an activation.
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

// onlyReader is the only step that reads some of a value, once and entirely; -1 if there is no such step, or others look at the value.
func (l *layers) onlyReader(v program.Value) int {
	reader := -1
	for i := range l.prog.Steps {
		for _, in := range l.prog.Steps[i].In {
			if !overlap(in, v) {
				continue
			}
			if reader >= 0 || in != v {
				return -1
			}
			reader = i
		}
	}
	if slices.ContainsFunc(l.results(), func(r program.Value) bool { return overlap(r, v) }) {
		return -1
	}
	return reader
}

// isWrittenBefore tells whether all steps that write some of a value come before step i.
func (l *layers) isWrittenBefore(v program.Value, i int) bool {
	for k := i; k < len(l.prog.Steps); k++ {
		if slices.ContainsFunc(l.prog.Steps[k].Out, func(out program.Value) bool { return overlap(out, v) }) {
			return false
		}
	}
	return true
}

// hasMemory tells whether nothing but a value uses its memory during a run.
func (l *layers) hasMemory(v program.Value) bool {
	b := &l.prog.Buffers[v.Buffer]
	return b.Source == program.Inner && b.Rows == program.Examples && b.Scope != program.Tile
}

// overlap tells whether two values have some columns in common.
func overlap(a, b program.Value) bool {
	return a.Buffer == b.Buffer && a.Column < b.Column+b.Columns && b.Column < a.Column+a.Columns
}

// interactGrad is the derivative of an interaction, perhaps with what is done with the gradient of its first vector.
func (u *run) interactGrad(r *replica, step, n int) error {
	s := &u.prog.Steps[step]
	dx, x, dy := r.at(s.Out[0]), r.at(s.In[0]), r.at(s.In[1])
	f, ok := u.firsts[step]
	if !ok {
		return r.kernels.InteractGrad(r.compute, dx, x, dy, s.Dim, n)
	}
	first := kernels.FirstVector{Activation: f.activation, Others: r.at(f.others), Gradient: r.at(f.out)}
	if i, ok := u.halfOf[f.out]; ok {
		first.Half = u.halfs[i].padded(r)
		r.halfs[i] = u.number
	}
	return r.kernels.InteractGradFirst(r.compute, dx.Slice(s.Dim, dx.Columns), first, x, dy, s.Dim, n)
}
