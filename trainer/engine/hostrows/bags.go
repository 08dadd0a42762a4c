package hostrows

import (
	"aibox/internal/kernel"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Bags is the sparse part of a mini-batch: see program.Inputs. Any number of threads may call its
// methods.
type Bags struct {
	fields, dim int
	mean        bool   // some field is averaged
	sums        []bool // which fields are summed, if others are averaged; nil if none is
	notes       bool   // the gradients of rows need factors

	offsets, index []int32
	weights        []float32 // nil if all are 1

	// For each row, the bags that it occurs in: see reader.Batch.
	rowStarts, rowBags []int32
	rowWeights         []float32

	factors []float32 // by which the sum of each bag was multiplied; nil if by nothing
}

// Init prepares v for the mini-batches of a program.
func (v *Bags) Init(net *program.Network, p *program.Program) {
	*v = Bags{fields: net.Fields, dim: net.RowDim}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == ops.KindBagPool {
			v.mean, v.sums = s.Pooling == ops.PoolMean, s.Sums
		}
	}
	v.notes = v.mean && p.Training()
}

// Set sets the mini-batch.
func (v *Bags) Set(in *program.Inputs) {
	v.offsets, v.index, v.weights = in.Offsets, in.Index, in.BagWeights
	v.rowStarts, v.rowBags, v.rowWeights = in.RowStarts, in.RowBags, in.RowWeights
	if v.notes {
		v.factors = engine.Resize(v.factors, len(in.Offsets)-1)
	}
}

// Size returns the size of the mini-batch: the numbers of its bags, of the features in them, and of
// its unique rows.
func (v *Bags) Size() (bags, features, rows int) {
	return len(v.offsets) - 1, len(v.index), max(0, len(v.rowStarts)-1)
}

// Bytes returns how much memory v has allocated.
func (v *Bags) Bytes() int64 { return 4 * int64(cap(v.factors)) }

// prefetchAhead is how many rows ahead of the current one a row is prefetched: the work on that
// many rows takes some hundred nanoseconds, about the latency of memory.
const prefetchAhead = 12

// Pool sums or averages the rows of each bag of n examples, from example first on. The results of
// an example are contiguous in out, stride elements from those of the next example. rows has the
// values of all unique rows of the mini-batch.
func (v *Bags) Pool(first, n int, out []float32, stride int, rows []float32) {
	r := v.dim
	for i := range n {
		out := out[i*stride:][:v.fields*r]
		bag := (first + i) * v.fields
		for f := range v.fields {
			lo, hi := v.offsets[bag+f], v.offsets[bag+f+1]
			if hi-lo != 1 || v.weights != nil {
				v.pool(v.mean && (v.sums == nil || !v.sums[f]), bag+f, out[f*r:][:r], rows)
				continue
			}
			if next := int(hi) + prefetchAhead; next < len(v.index) {
				kernel.Prefetch(rows[int(v.index[next])*r:][:r])
			}
			copy(out[f*r:][:r], rows[int(v.index[lo])*r:][:r])
			v.noteFactor(bag+f, 1)
		}
	}
}

// pool pools one bag into out. It stores the factor of the bag, if factors are needed.
func (v *Bags) pool(mean bool, b int, out, rows []float32) {
	r := len(out)
	lo, hi := v.offsets[b], v.offsets[b+1]
	factor := float32(1)
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
		factor = ops.MeanFactor(lo, hi, v.weights)
		kernel.Scale(factor, out)
	}
	v.noteFactor(b, factor)
}

func (v *Bags) noteFactor(b int, factor float32) {
	if v.factors != nil {
		v.factors[b] = factor
	}
}

// Gradients are the gradients of the pooled bags, in the layout of Pool's results.
type Gradients struct {
	Data   []float32
	Stride int // elements from one example to the next

	pieces []float32 // sums of full pieces (see fullPieces), by number; nil if they were not computed
}

// piece returns the sum, of r values, of the full piece whose first occurrence is given.
func (g *Gradients) piece(first, r int) []float32 { return g.pieces[first/kernel.SumPiece*r:][:r] }

// RowGrad writes the gradient of unique row i into out: the sum of the gradients of the bags that
// it occurs in, in ascending order and in pieces (kernel.SumPiece). scratch is as long as out.
func (v *Bags) RowGrad(i int, g Gradients, out, scratch []float32) {
	first, end := int(v.rowStarts[i]), int(v.rowStarts[i+1])
	if end-first <= kernel.SumPiece {
		v.sum(first, end, g, out)
		return
	}
	for at := first; at < end; at += kernel.SumPiece {
		next, piece := min(end, at+kernel.SumPiece), scratch
		if g.pieces != nil && next-at == kernel.SumPiece {
			piece = g.piece(at, len(out))
		} else {
			v.sum(at, next, g, piece)
		}
		if at == first {
			copy(out, piece)
		} else {
			kernel.Add(out, piece)
		}
	}
}

// sum adds up the gradients of occurrences lo to hi.
func (v *Bags) sum(lo, hi int, g Gradients, out []float32) {
	r := len(out)
	clear(out)
	for at := lo; at < hi; at++ {
		// This may prefetch for the next row, since rows are usually taken in order.
		if next := at + prefetchAhead; next < len(v.rowBags) {
			kernel.Prefetch(v.gradient(g, v.rowBags[next], r))
		}
		b := v.rowBags[at]
		grad := v.gradient(g, b, r)
		if v.factors == nil && v.rowWeights == nil {
			kernel.Add(out, grad)
			continue
		}
		factor := float32(1)
		if v.factors != nil {
			factor = v.factors[b]
		}
		if v.rowWeights != nil {
			factor *= v.rowWeights[at]
		}
		kernel.Axpy(factor, grad, out)
	}
}

// gradient returns the gradient, of r values, of the pooled bag b.
func (v *Bags) gradient(g Gradients, b int32, r int) []float32 {
	at := int(b) * r
	if gap := g.Stride - v.fields*r; gap != 0 { // avoids a division, which costs as much as the sum
		at += int(b) / v.fields * gap
	}
	return g.Data[at:][:r]
}
