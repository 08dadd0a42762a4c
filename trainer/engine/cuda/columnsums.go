package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// A step that sums columns over the examples first leaves the sums of chunks of examples in work
// memory of its own, so that no such step waits for another one's memory. Sums that no step reads,
// such as most gradients of biases, are finished together, in a few launches at the end of the
// segment.

// summedColumns is the number of columns that a step sums, or may sum, over the examples without a
// matrix product. The columns of biasColumns lie behind them in the work memory.
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

// biasColumns is the number of columns of the bias gradient that a step sums itself, behind its
// product; 0 if an earlier step has left the sums of chunks.
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

// biasWorkOf is the memory of a step for the sums of a bias gradient.
func (u *run) biasWorkOf(r *replica, step, n int) gpu.Region {
	behind := kernels.WorkBytes(n, summedColumns(&u.prog.Steps[step]))
	return gpu.Part(r.arena, u.works[step]+behind, kernels.WorkBytes(n, u.biasColumns(step)))
}

// finishSum adds up the sums of chunks in work into the one row of value v, which sums locates: at
// the end of the segment if no step reads v, else at once.
func (u *run) finishSum(r *replica, v program.Value, sums kernels.Matrix, work gpu.Region, n int) error {
	c := kernels.ChunkSums{Sums: sums, Work: work}
	if !u.final(v) {
		return r.kernels.FinishSums(r.compute, n, c)
	}
	r.unfinished = append(r.unfinished, c)
	return nil
}

// final reports whether a value is a gradient that no step reads.
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
