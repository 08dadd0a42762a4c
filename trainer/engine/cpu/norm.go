package cpu

import (
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// normMomentum is the weight of a mini-batch in the running statistics: PyTorch's default.
const normMomentum = 0.1

func (t *tile) normalize(y, x matrix, gamma, beta []float32, stats matrix) {
	c := y.columns
	scale := t.scratch.extra[:c]
	mean, variance := stats.row(0), stats.row(1)
	for j := range scale {
		scale[j] = ops.InverseDeviation(variance[j])
	}
	for i := range t.n {
		row, out := x.row(i), y.row(i)
		for j, v := range row {
			out[j] = float32(gamma[j]*float32((v-mean[j])*scale[j])) + beta[j]
		}
	}
}

// normalizeGrad computes the gradient of the operand, whose normalized value also depends on the
// statistics.
func (t *tile) normalizeGrad(s *program.Step, dx matrix) {
	x, gamma, stats := t.at(s.In[0]), t.at(s.In[1]).row(0), t.at(s.In[2])
	dgamma, dbeta, dy := t.at(s.In[3]).row(0), t.at(s.In[4]).row(0), t.at(s.In[5])
	c := dx.columns
	mean, variance := stats.row(0), stats.row(1)
	scale, meanGrad, slope := t.scratch.extra[:c], t.scratch.extra[c:2*c], t.scratch.extra[2*c:3*c]
	count := float32(t.e.n)
	for j := range scale {
		scale[j] = ops.InverseDeviation(variance[j])
		meanGrad[j] = dbeta[j] / count
		slope[j] = dgamma[j] / count
	}
	for i := range t.n {
		row, grad, out := x.row(i), dy.row(i), dx.row(i)
		for j, v := range row {
			normalized := float32((v - mean[j]) * scale[j])
			out[j] = gamma[j] * scale[j] * (grad[j] - meanGrad[j] - float32(normalized*slope[j]))
		}
	}
}

// runColumns computes columns lo to hi of the current reduction of a normalization, over all
// examples of the mini-batch in ascending order.
func (e *execution) runColumns(lo, hi int) {
	s := e.reduction
	t := tile{e: e, lo: e.lo, n: e.hi - e.lo}
	scratch := e.scratch.take(0, 0)
	scratch.columns = engine.Resize(scratch.columns, 2*(hi-lo))
	clear(scratch.columns)
	if s.Kind == ops.KindBatchStats {
		t.batchStats(t.at(s.Out[0]), t.at(s.In[0]), lo, hi, scratch.columns)
	} else {
		t.gammaGrad(t.at(s.Out[0]).row(0), t.at(s.In[0]), t.at(s.In[1]), t.at(s.In[2]), lo, hi, scratch.columns)
	}
	e.scratch.put(scratch)
}

// batchStats computes mean and variance. It sums in double precision, and computes the deviations
// from the mean in a second pass, which stays accurate if the mean is much larger than the
// deviations.
func (t *tile) batchStats(stats, x matrix, lo, hi int, acc []float64) {
	sum, square := acc[:hi-lo], acc[hi-lo:]
	for i := range t.n {
		for j, v := range x.row(i)[lo:hi] {
			sum[j] += float64(v)
		}
	}
	for j := range sum {
		sum[j] /= float64(t.n)
		stats.row(0)[lo+j] = float32(sum[j])
	}
	for i := range t.n {
		for j, v := range x.row(i)[lo:hi] {
			d := float64(v) - sum[j]
			square[j] += float64(d * d)
		}
	}
	for j := range square {
		stats.row(1)[lo+j] = float32(square[j] / float64(t.n))
	}
}

// gammaGrad computes Σ dy·x̂.
func (t *tile) gammaGrad(dgamma []float32, x, stats, dy matrix, lo, hi int, scale []float64) {
	mean, variance := stats.row(0), stats.row(1)
	for j := range hi - lo {
		scale[j] = float64(ops.InverseDeviation(variance[lo+j])) // exact
	}
	acc := dgamma[lo:hi]
	clear(acc)
	for i := range t.n {
		row, grad := x.row(i)[lo:hi], dy.row(i)[lo:hi]
		for j, v := range row {
			acc[j] += float32(grad[j] * float32((v-mean[lo+j])*float32(scale[j])))
		}
	}
}

// columnGrain is the number of columns, with n rows each, that are worth another thread.
func columnGrain(n int) int { return max(lineElements, (1<<14)/max(1, n)) }

// checkNorms fails if batch statistics are not finite: see engine.StatisticsError.
func (e *execution) checkNorms() error {
	for i, v := range e.prog.Stats {
		if !engine.Finite(e.base[v.Buffer][:2*v.Columns]) {
			return engine.StatisticsError(&e.net.Norms[i])
		}
	}
	return nil
}

// updateNorms moves the running statistics towards those of the mini-batch. As in PyTorch, the
// running variance is the unbiased one; a single example has none and leaves it unchanged.
func (e *execution) updateNorms() {
	for i, v := range e.prog.Stats {
		batch, norm := e.base[v.Buffer][:2*v.Columns], &e.net.Norms[i]
		for j, x := range batch[:v.Columns] {
			norm.Mean.Data[j] += float32(normMomentum * (x - norm.Mean.Data[j]))
		}
		if e.n < 2 {
			continue
		}
		unbiased := float32(float64(e.n) / float64(e.n-1))
		for j, x := range batch[v.Columns:] {
			norm.Variance.Data[j] += float32(normMomentum * (float32(x*unbiased) - norm.Variance.Data[j]))
		}
	}
}
