package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// bagPoolGrad is the derivative of bagPool with regard to the rows. It computes the gradients of
// the rows (U, R) from the gradients of the bags (N, F*R), the rows (U, R; only their shape is
// used) and the bags.
//
// It first sorts the occurrences by row with a stable counting sort, so that those of a row are in
// ascending order. Then the rows can be divided among threads without locks, and the order of each
// sum, that of kernel.SumPiece, does not depend on the threads.
type bagPoolGrad struct {
	base
	pools

	starts  []int32   // (U+1) first occurrence of each row
	bagOf   []int32   // (features) bag of each occurrence, by row
	weights []float32 // (features) weight of each occurrence, by row; for weighted bags
	factors []float32 // (N*F) mean factor of each bag; for means
}

func (op *bagPoolGrad) Type() hm.Type {
	return hm.NewFnType(floats(2), floats(2), int32s(), int32s(), floats(1), floats(2))
}

func (op *bagPoolGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds[:2])
	if err != nil {
		return nil, err
	}
	if s[0][1] != op.fields*s[1][1] {
		return nil, fmt.Errorf("gradients are %v, rows %v, for %d fields", s[0], s[1], op.fields)
	}
	return tensor.Shape{s[1][0], s[1][1]}, nil
}

func (op *bagPoolGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	dy, _, _ := matrix(in[0])
	_, u, r := matrix(in[1])
	bags := bagsOf(in[2:])
	drows, ddata := op.out(u, r)
	op.turn(bags, u)
	features := len(op.bagOf)
	// Rows differ widely in their number of occurrences; small parts balance the work.
	grain := rowGrain(r * max(1, features/max(1, u)))
	parallel(u, grain, func(lo, hi int) {
		piece := make([]float32, r)
		for i := lo; i < hi; i++ {
			out := ddata[i*r : (i+1)*r]
			first, end := op.starts[i], op.starts[i+1]
			op.sum(out, dy, bags, first, min(first+kernel.SumPiece, end))
			for p := first + kernel.SumPiece; p < end; p += kernel.SumPiece {
				op.sum(piece, dy, bags, p, min(p+kernel.SumPiece, end))
				kernel.Add(out, piece)
			}
		}
	})
	return drows, nil
}

// sum sets out to the sum of the gradients of occurrences lo to hi of one row.
func (op *bagPoolGrad) sum(out, dy []float32, bags bagView, lo, hi int32) {
	clear(out)
	r := len(out)
	for p := lo; p < hi; p++ {
		b := int(op.bagOf[p])
		grad := dy[b*r : (b+1)*r]
		switch {
		case op.pooling == PoolMean && bags.weights != nil:
			kernel.Axpy(op.weights[p]*op.factors[b], grad, out)
		case op.pooling == PoolMean:
			kernel.Axpy(op.factors[b], grad, out)
		case bags.weights != nil:
			kernel.Axpy(op.weights[p], grad, out)
		default:
			kernel.Add(out, grad)
		}
	}
}

// turn fills starts, bagOf, weights and factors.
func (op *bagPoolGrad) turn(bags bagView, rows int) {
	n := bags.len()
	features := int(bags.offsets[n])
	op.starts = resize(op.starts, rows+1)
	op.bagOf = resize(op.bagOf, features)
	clear(op.starts)
	for _, i := range bags.index[:features] {
		op.starts[i+1]++
	}
	for i := range rows {
		op.starts[i+1] += op.starts[i]
	}
	if bags.weights != nil {
		op.weights = resize(op.weights, features)
	}
	// Each occurrence is placed at its row's start, which is then increased. Afterwards
	// starts[i] is where row i+1 begins, so the entries are shifted back.
	for b := range n {
		for p := bags.offsets[b]; p < bags.offsets[b+1]; p++ {
			at := &op.starts[bags.index[p]]
			op.bagOf[*at] = int32(b)
			if bags.weights != nil {
				op.weights[*at] = bags.weights[p]
			}
			*at++
		}
	}
	copy(op.starts[1:], op.starts[:rows])
	op.starts[0] = 0

	if op.pooling == PoolMean {
		op.factors = resize(op.factors, n)
		for b := range n {
			op.factors[b] = 1
			if op.averages(b) {
				op.factors[b] = bags.meanFactor(b)
			}
		}
	}
}

// resize returns a slice of length n, reusing s's memory where it can. The
// contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
