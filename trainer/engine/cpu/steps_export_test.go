package cpu

import (
	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// MeasuredStep is one step of training, which a benchmark runs by itself over all examples of the
// mini-batch that the machine has trained last, on one thread.
type MeasuredStep struct {
	*program.Step
	Run  func()
	Work kernel.Work
}

// Steps returns the steps of training. The mini-batch has to fit into one block.
func (m *Machine) Steps() []MeasuredStep {
	e := &m.train
	e.lo, e.hi = 0, e.n
	var steps []MeasuredStep
	for _, stage := range e.prog.Stages {
		for i := stage.First; i < stage.End; i++ {
			s := &e.prog.Steps[i]
			steps = append(steps, MeasuredStep{s, m.runner(stage, i), e.work(s)})
		}
	}
	return steps
}

func (m *Machine) runner(stage program.Stage, i int) func() {
	e, s := &m.train, &m.train.prog.Steps[i]
	switch {
	case stage.RowWise:
		stage.First, stage.End = i, i+1
		return func() {
			e.stage = stage
			e.runTiles(0, (e.n+e.tile-1)/e.tile)
		}
	case s.Kind == ops.KindBagPoolGrad:
		grad := make([]float32, m.net.RowDim)
		_, _, rows := e.bags.Size()
		return func() {
			for row := range rows {
				m.RowGrad(row, grad)
			}
		}
	case s.Continues():
		return func() { e.sumUp(e.prog.Steps[i : i+1]) }
	}
	return func() { e.reduce(s) }
}

// work is what a step has to do at least: the multiply-adds of products of matrices and of vectors;
// else reading and writing its operands.
func (e *execution) work(s *program.Step) kernel.Work {
	w := kernel.Work{Threads: 1}
	switch s.Kind {
	case ops.KindLinear, ops.KindMatMul:
		w.FMAs = e.n * s.In[0].Columns * s.Out[0].Columns
		return w
	case ops.KindInteract:
		w.FMAs = e.n * kernel.Pairs(s.In[0].Columns/s.Dim) * s.Dim
		return w
	case ops.KindInteractGrad:
		w.FMAs = 2 * e.n * kernel.Pairs(s.In[0].Columns/s.Dim) * s.Dim
		return w
	case ops.KindBagPool, ops.KindBagPoolGrad:
		bags, features, _ := e.bags.Size()
		w.Bytes = 4 * e.net.RowDim * (features + bags)
		return w
	}
	tiles := true
	values := append([]program.Value(nil), s.In...)
	for _, v := range append(values, s.Out...) {
		b := &e.prog.Buffers[v.Buffer]
		switch {
		case b.Source == program.One || b.Source == program.Clock || e.base[v.Buffer] == nil && b.Source != program.Inner:
		case b.Rows == program.Examples:
			w.Bytes += 4 * e.n * v.Columns
			tiles = tiles && b.Source == program.Inner && b.Scope == program.Tile
		default:
			w.Bytes += 4 * b.Count * v.Columns
		}
	}
	if tiles { // they lie in the scratch memory of a tile
		w.Memory = w.Bytes * e.tile / e.n
	}
	return w
}
