package cpu

import (
	"fmt"

	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// reduce runs a step that sums over the examples of the current block. It goes on from the
// results of the block before.
func (e *execution) reduce(s *program.Step) {
	t := &tile{e: e, lo: e.lo, n: e.hi - e.lo}
	more := e.lo > 0
	switch s.Kind {
	case ops.KindMatMul:
		x, dz, dw := t.at(s.In[0]), t.at(s.In[1]), t.at(s.Out[0])
		if e.precision.Rounds(x.columns, dz.columns) {
			kernel.GemmBF16(true, false, x.columns, dz.columns, t.n, x.data, x.stride, dz.data, dz.stride, more, nil, dw.data, dw.stride)
		} else {
			kernel.Gemm(true, false, x.columns, dz.columns, t.n, x.data, x.stride, dz.data, dz.stride, more, dw.data, dw.stride)
		}
		if len(s.Out) > 1 {
			kernel.ColSum(t.n, dz.columns, dz.data, dz.stride, more, t.at(s.Out[1]).row(0))
		}
	case ops.KindColumnSum:
		x := t.at(s.In[0])
		kernel.ColSum(t.n, x.columns, x.data, x.stride, more, t.at(s.Out[0]).row(0))
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
