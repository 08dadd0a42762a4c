package cpu

import (
	"fmt"

	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// reduceAll runs a stage of reductions over the current block.
func (e *execution) reduceAll(s program.Stage) {
	for i := s.First; i < s.End; i++ {
		first := i
		for i < s.End && e.prog.Steps[i].Continues() {
			i++
		}
		if first < i {
			e.sumUp(e.prog.Steps[first:i])
		}
		if i < s.End {
			e.reduce(&e.prog.Steps[i])
		}
	}
}

// reduce runs a step that sums over the examples of the mini-batch, or over gradients.
func (e *execution) reduce(s *program.Step) {
	t := &tile{e: e, lo: e.lo, n: e.hi - e.lo}
	switch s.Kind {
	case ops.KindBatchStats, ops.KindBatchNormGamma:
		e.reduction = s
		kernel.Parallel(t.at(s.In[0]).columns, columnGrain(t.n), e.columns)
	case ops.KindBagPoolGrad: // see Machine.RowGrad
	case ops.KindSum, program.KindCopy: // of gradients of parameters
		all := e.fixed(s.Out[0])
		copy(all, e.fixed(s.In[0]))
		for _, v := range s.In[1:] {
			kernel.Add(all, e.fixed(v))
		}
	default:
		panic(fmt.Sprintf("cpu: a reduction of kind %d", s.Kind))
	}
}

// fixed returns all of a value that is a whole buffer of parameters or gradients.
func (e *execution) fixed(v program.Value) []float32 {
	b := &e.prog.Buffers[v.Buffer]
	return e.base[v.Buffer][:b.Count*b.Stride]
}
