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

	// For each row the bags that it occurs in: see reader.Batch.
	rowStarts, rowBags []int32
	rowWeights         []float32
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

// prefetchAhead is how many rows ahead of those that are worked on the next ones are asked
// for: some hundred nanoseconds, which the memory takes to answer.
const prefetchAhead = 12

// pool sums or averages the rows of each bag.
func (t *tile) pool(s *program.Step, y, rows matrix) {
	v := &t.e.bags
	r := rows.columns
	for i := range t.n {
		out := y.row(i)
		first := (t.lo + i) * s.Fields
		for f := range s.Fields {
			mean := s.Pooling == ops.PoolMean && (s.Sums == nil || !s.Sums[f])
			t.bag(mean, v, first+f, out[f*r:][:r], rows.data)
		}
	}
}

// bag pools one bag into out. If some field is averaged, it notes by what the sum of the bag is
// multiplied.
func (t *tile) bag(mean bool, v *bags, b int, out, rows []float32) {
	r := len(out)
	lo, hi := v.offsets[b], v.offsets[b+1]
	factor := float32(1)
	if hi-lo == 1 && v.weights == nil {
		if next := int(hi) + prefetchAhead; next < len(v.index) {
			kernel.Prefetch(rows[int(v.index[next])*r:][:r])
		}
		copy(out, rows[int(v.index[lo])*r:][:r])
		t.noteFactor(b, factor)
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
	if mean && hi > lo {
		factor = v.meanFactor(b)
		kernel.Scale(factor, out)
	}
	t.noteFactor(b, factor)
}

func (t *tile) noteFactor(b int, factor float32) {
	if t.e.means != nil {
		t.e.means[b] = factor
	}
}

// RowGrad writes the gradient of unique row i of the last mini-batch of Train into out
// (RowDim): the sum of those of the bags that it occurs in, in ascending order. So it does not
// depend on threads, any number of which may call it.
func (m *Machine) RowGrad(i int, out []float32) {
	e := &m.train
	v := &e.bags
	clear(out)
	for at := int(v.rowStarts[i]); at < int(v.rowStarts[i+1]); at++ {
		// Perhaps one of the next row: rows are usually taken in their order.
		if next := at + prefetchAhead; next < len(v.rowBags) {
			kernel.Prefetch(e.bagGrad(v.rowBags[next], len(out)))
		}
		b := v.rowBags[at]
		grad := e.bagGrad(b, len(out))
		if e.means == nil && v.rowWeights == nil {
			kernel.Add(out, grad)
			continue
		}
		factor := float32(1)
		if e.means != nil {
			factor = e.means[b]
		}
		if v.rowWeights != nil {
			factor *= v.rowWeights[at]
		}
		kernel.Axpy(factor, grad, out)
	}
}

// bagGrad is the gradient of what bag b was pooled to, r values.
func (e *execution) bagGrad(b int32, r int) []float32 {
	v := e.prog.Pooled
	fields := e.net.Fields
	return e.base[v.Buffer][int(b)/fields*e.prog.Buffers[v.Buffer].Stride+int(b)%fields*r+v.Column:][:r]
}
