package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Steps that sum up columns over the examples leave sums of chunks of examples in memory of their
// own, so no such step waits for another one because of that. The second halves of those sums that
// nobody needs before the end of a segment, most gradients of biases, are a few launches there.

// summedColumns is how many columns a step sums up over the examples with a kernel that is not a
// product, or may. Those of biasColumns come behind.
func summedColumns(s *program.Step) int {
	switch {
	case s.Kind == ops.KindBatchStats, s.Kind == ops.KindBatchNormGamma, s.Kind == ops.KindColumnSum:
		return s.In[0].Columns
	case derives(s):
		return s.Out[0].Columns
	case s.Kind == ops.KindMatMul && s.TransA && s.Out[0].Columns == 1:
		return s.In[0].Columns
	}
	return 0
}

// biasColumns is how many columns the gradient of a bias has that a step sums up behind its product.
func (l *layers) biasColumns(step int) int {
	s := &l.prog.Steps[step]
	if !biasGradient(s) || l.summed[step] >= 0 {
		return 0
	}
	return s.In[1].Columns
}

// workOf is the memory of a step for sums over n examples.
func (u *run) workOf(r *replica, step, n int) gpu.Region {
	return gpu.Part(r.arena, u.works[step], kernels.WorkBytes(n, summedColumns(&u.prog.Steps[step])))
}

// biasWorkOf is that for the gradient of a bias.
func (u *run) biasWorkOf(r *replica, step, n int) gpu.Region {
	behind := kernels.WorkBytes(n, summedColumns(&u.prog.Steps[step]))
	return gpu.Part(r.arena, u.works[step]+behind, kernels.WorkBytes(n, u.biasColumns(step)))
}

// finishSum adds up the sums of chunks of columns that lie in work, at once or at the end of the
// segment. They become a value, as one row.
func (u *run) finishSum(r *replica, v program.Value, sums kernels.Matrix, work gpu.Region, n int) error {
	c := kernels.ChunkSums{Sums: sums, Work: work}
	if !u.final(v) {
		return r.kernels.FinishSums(r.compute, n, c)
	}
	r.unfinished = append(r.unfinished, c)
	return nil
}

// final tells whether a value is a gradient that no step reads.
func (l *layers) final(v program.Value) bool {
	if l.prog.Buffers[v.Buffer].Source != program.Gradient {
		return false
	}
	for i := range l.prog.Steps {
		for _, in := range l.prog.Steps[i].In {
			if in.Buffer == v.Buffer {
				return false
			}
		}
	}
	return true
}
