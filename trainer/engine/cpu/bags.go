package cpu

import (
	"aibox/internal/kernel"
	"aibox/reader"
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
// without locks, and the order of each sum does not depend on the threads. The reader
// makes it, beside training.
type rowIndex struct {
	starts  []int32   // (U+1) first occurrence of each row
	bagOf   []int32   // (features) bag of each occurrence, by row
	factors []float32 // (features) what its gradient is multiplied by; nil: 1

	made  reader.Batch // for inputs without an index
	means []float32    // (bags), of each bag, for means
	each  []float32    // memory of factors for means
}

func (x *rowIndex) bytes() int64 {
	return 4 * int64(cap(x.made.RowStarts)+cap(x.made.RowBags)+cap(x.made.RowWeights)+cap(x.means)+cap(x.each))
}

// prepare takes the index over from the inputs, or makes it.
func (x *rowIndex) prepare(in *program.Inputs, v bags, rows int, p ops.Pooling) {
	x.starts, x.bagOf, x.factors = in.RowStarts, in.RowBags, in.RowWeights
	if x.starts == nil {
		x.made.Offsets, x.made.Index, x.made.BagWeights = v.offsets, v.index, v.weights
		x.made.Invert(rows)
		x.starts, x.bagOf, x.factors = x.made.RowStarts, x.made.RowBags, x.made.RowWeights
	}
	if p != ops.PoolMean {
		return
	}
	x.means, x.each = resize(x.means, len(v.offsets)-1), resize(x.each, len(x.bagOf))
	for b := range x.means {
		x.means[b] = v.meanFactor(b)
	}
	for at, b := range x.bagOf {
		x.each[at] = x.means[b]
		if x.factors != nil {
			x.each[at] *= x.factors[at]
		}
	}
	x.factors = x.each
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
		if m.index.factors == nil {
			kernel.Add(out, grad)
		} else {
			kernel.Axpy(m.index.factors[at], grad, out)
		}
	}
}
