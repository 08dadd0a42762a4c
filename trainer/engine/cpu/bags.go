package cpu

import (
	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// bags is the sparse part of a mini-batch: see program.Inputs.
type bags struct {
	offsets, index []int32
	weights        []float32 // nil: all 1
}

// meanFactor is the factor by which the sum over bag b is multiplied to give its mean.
func (v *bags) meanFactor(b int) float32 {
	lo, hi := v.offsets[b], v.offsets[b+1]
	total := float32(hi - lo)
	if v.weights != nil {
		total = 0
		for _, w := range v.weights[lo:hi] {
			total += w
		}
	}
	if total == 0 {
		return 0
	}
	return 1 / total
}

// pool sums or averages the rows of each bag.
func (t *tile) pool(s *program.Step, y, rows matrix) {
	v := &t.e.bags
	r := rows.columns
	for i := range t.n {
		out := y.row(i)
		b := (t.lo + i) * s.Fields
		for f := 0; f < len(out); f, b = f+r, b+1 {
			t.bag(s.Pooling, v, b, out[f:][:r], rows.data)
		}
	}
}

// bag pools one bag into out.
func (t *tile) bag(p ops.Pooling, v *bags, b int, out, rows []float32) {
	r := len(out)
	lo, hi := v.offsets[b], v.offsets[b+1]
	if hi-lo == 1 && v.weights == nil {
		copy(out, rows[int(v.index[lo])*r:][:r])
		return
	}
	clear(out)
	for at := lo; at < hi; at++ {
		row := rows[int(v.index[at])*r:][:r]
		if v.weights == nil {
			kernel.Add(out, row)
		} else {
			kernel.Axpy(v.weights[at], row, out)
		}
	}
	if p == ops.PoolMean && hi > lo {
		kernel.Scale(v.meanFactor(b), out)
	}
}

// rowIndex lists, for each unique row of a mini-batch, the bags that it occurs in, in
// ascending order. So the gradients of rows can be computed by any number of threads
// without locks, and the order of each sum does not depend on the threads.
type rowIndex struct {
	starts  []int32   // (U+1) first occurrence of each row
	bagOf   []int32   // (features) bag of each occurrence, by row
	factors []float32 // (features) what its gradient is multiplied by; empty: 1
}

func (x *rowIndex) bytes() int64 {
	return 4 * int64(cap(x.starts)+cap(x.bagOf)+cap(x.factors))
}

// build sorts the occurrences by row, with a stable counting sort.
func (x *rowIndex) build(v bags, rows int, p ops.Pooling) {
	n := len(v.offsets) - 1
	features := int(v.offsets[n])
	x.starts = resize(x.starts, rows+1)
	x.bagOf = resize(x.bagOf, features)
	clear(x.starts)
	for _, i := range v.index[:features] {
		x.starts[i+1]++
	}
	for i := range rows {
		x.starts[i+1] += x.starts[i]
	}
	weighted := v.weights != nil || p == ops.PoolMean
	x.factors = x.factors[:0]
	if weighted {
		x.factors = resize(x.factors, features)
	}
	// Each occurrence is placed at its row's start, which is then increased. Afterwards
	// starts[i] is where row i+1 begins, so the entries are shifted back.
	for b := range n {
		factor := float32(1)
		if p == ops.PoolMean {
			factor = v.meanFactor(b)
		}
		for at := v.offsets[b]; at < v.offsets[b+1]; at++ {
			start := &x.starts[v.index[at]]
			x.bagOf[*start] = int32(b)
			switch {
			case v.weights != nil && p == ops.PoolMean:
				x.factors[*start] = v.weights[at] * factor
			case v.weights != nil:
				x.factors[*start] = v.weights[at]
			case weighted:
				x.factors[*start] = factor
			}
			*start++
		}
	}
	copy(x.starts[1:], x.starts[:rows])
	x.starts[0] = 0
}

// RowGrad writes the gradient of unique row i of the last mini-batch of Train into out
// (RowDim). Any number of goroutines may call it.
func (m *Machine) RowGrad(i int, out []float32) {
	e := &m.train
	v := e.prog.Pooled
	stride := e.prog.Buffers[v.Buffer].Stride
	pooled := e.base[v.Buffer][v.Column:]
	r, fields := len(out), e.net.Fields
	clear(out)
	for at := m.index.starts[i]; at < m.index.starts[i+1]; at++ {
		b := int(m.index.bagOf[at])
		grad := pooled[b/fields*stride+b%fields*r:][:r]
		if len(m.index.factors) == 0 {
			kernel.Add(out, grad)
		} else {
			kernel.Axpy(m.index.factors[at], grad, out)
		}
	}
}
