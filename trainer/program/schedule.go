package program

import (
	"slices"

	"aibox/trainer/ops"
)

// schedule orders the steps in stages. A stage takes all steps whose operands are ready. The very
// first step is the one that pools bags, which depends on no other step.
func (l *lowering) schedule() {
	if i := slices.IndexFunc(l.Steps, func(s Step) bool { return s.Kind == ops.KindBagPool }); i > 0 {
		pool := l.Steps[i]
		copy(l.Steps[1:], l.Steps[:i])
		l.Steps[0] = pool
	}
	// writers are, for each buffer, the steps that write to it or, if it was moved into a
	// concatenation, to any part of that.
	writers := map[int][]int{}
	for i, s := range l.Steps {
		for _, v := range s.Out {
			b := l.root(v).Buffer
			writers[b] = append(writers[b], i)
		}
	}
	done := make([]bool, len(l.Steps))
	ready := func(i int) bool {
		for _, v := range l.Steps[i].In {
			for _, w := range writers[l.root(v).Buffer] {
				if w != i && !done[w] && l.overlap(v, w) {
					return false
				}
			}
		}
		return true
	}
	var order []Step
	for row := true; len(order) < len(l.Steps); row = !row {
		stage := Stage{RowWise: row, First: len(order)}
		for i := range l.Steps {
			if s := &l.Steps[i]; !done[i] && l.isRowWise(s) == row && ready(i) {
				// Reductions of a stage may depend on one another: they run in order.
				done[i] = true
				order = append(order, *s)
			}
		}
		stage.End = len(order)
		if stage.End > stage.First {
			l.Stages = append(l.Stages, stage)
		}
	}
	l.Steps = order

	l.Blocks = true
	for i, s := range l.Stages {
		if s.RowWise && i > 0 || i > 1 {
			l.Blocks = false
		}
		for _, step := range l.Steps[s.First:s.End] {
			if !s.RowWise && step.Kind != ops.KindBagPoolGrad && !step.Continues() {
				l.Blocks = false
			}
		}
	}
}

// isRowWise reports whether a step works on the rows of examples.
func (l *lowering) isRowWise(s *Step) bool {
	return rowWise(s) && l.Buffers[s.Out[0].Buffer].Rows == Examples
}

// overlap reports whether step w writes columns of v.
func (l *lowering) overlap(v Value, w int) bool {
	v = l.root(v)
	return slices.ContainsFunc(l.Steps[w].Out, func(o Value) bool { return l.root(o).Overlaps(v) })
}

// root returns the location of a value whose buffer may have been moved into a concatenation.
func (l *lowering) root(v Value) Value {
	for {
		p, ok := l.parents[v.Buffer]
		if !ok {
			return v
		}
		v = Value{p.Buffer, p.Column + v.Column, v.Columns}
	}
}

// settle replaces all values by their locations, and removes buffers that nothing uses.
func (l *lowering) settle() {
	numbers := map[int]int{}
	var buffers []Buffer
	at := func(v Value) Value {
		if v.Columns == 0 {
			return v
		}
		v = l.root(v)
		n, ok := numbers[v.Buffer]
		if !ok {
			n = len(buffers)
			numbers[v.Buffer] = n
			buffers = append(buffers, l.Buffers[v.Buffer])
		}
		v.Buffer = n
		return v
	}
	for i := range l.Steps {
		for j, v := range l.Steps[i].In {
			l.Steps[i].In[j] = at(v)
		}
		for j, v := range l.Steps[i].Out {
			l.Steps[i].Out[j] = at(v)
		}
	}
	l.Logits, l.Terms, l.Pooled = at(l.Logits), at(l.Terms), at(l.Pooled)
	for i, v := range l.Stats {
		l.Stats[i] = at(v)
	}
	l.Buffers = buffers
}
