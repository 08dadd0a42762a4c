package cpu

import (
	"cmp"
	"slices"

	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Gradients of weights and biases are divided into rectangles: rows and columns of dW = xᵀ·dz. One
// thread computes a rectangle from the first example to the last. So threads share no packed
// operands and do not wait for one another between two products, and what a thread packs stays in
// its second-level cache until it is used.

const (
	// A rectangle has at most about this many rows and columns: with the operands of two products
	// of 128 examples, one at work and one that is prefetched, 4·(256·512 + 2·128·(256 + 512)) bytes
	// = 1.25 MiB.
	mostRows    = 256
	mostColumns = 512
	// mostExamples is the largest number of examples that one product sums over.
	mostExamples = 128
	// rectanglesPerThread is the least number of rectangles for each thread, so that all threads
	// end at about the same time. The fewer there are, the less each thread reads.
	rectanglesPerThread = 2
	// fewestElements is the size below which a rectangle is not divided further: the smaller it is,
	// the larger is the share of packing.
	fewestElements = 112 * 128
)

// rectangle is a range of rows and columns of a step's result.
type rectangle struct {
	step                       *program.Step
	row, rows, column, columns int
}

// sumUp runs independent reductions over the current block. It adds to the results of the block
// before.
func (e *execution) sumUp(steps []program.Step) {
	elements := 0
	for i := range steps {
		m, n := resultSize(&steps[i])
		elements += m * n
	}
	rows, columns := rectangleSize(elements, kernel.Threads())
	e.rectangles = e.rectangles[:0]
	for i := range steps {
		e.rectangles = cutResult(e.rectangles, &steps[i], rows, columns)
	}
	// The largest first: small ones fill what is left at the end.
	slices.SortFunc(e.rectangles, func(a, b rectangle) int { return cmp.Compare(b.rows*b.columns, a.rows*a.columns) })
	kernel.Parallel(len(e.rectangles), 1, e.sums)
}

// rectangleSize returns how many rows and columns rectangles have at most, for results with the
// given number of elements in all.
func rectangleSize(elements, threads int) (rows, columns int) {
	rows, columns = mostRows, mostColumns
	if threads == 1 {
		return rows, columns
	}
	for most := max(fewestElements, elements/(threads*rectanglesPerThread)); rows*columns > most; {
		if columns >= rows {
			columns /= 2
		} else {
			rows /= 2
		}
	}
	return rows, columns
}

// cutResult appends the rectangles of a step's result.
func cutResult(to []rectangle, s *program.Step, rows, columns int) []rectangle {
	m, n := resultSize(s)
	high, wide := evenly(m, rows, kernel.UnitRows), evenly(n, columns, kernel.UnitColumns)
	for r := 0; r < m; r += high {
		for c := 0; c < n; c += wide {
			to = append(to, rectangle{s, r, min(high, m-r), c, min(wide, n-c)})
		}
	}
	return to
}

// evenly returns the length of the parts of n, a multiple of unit, for the smallest number of parts
// of at most about most each.
func evenly(n, most, unit int) int {
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + unit - 1) / unit * unit
}

// resultSize returns the rows and columns of the result of a step.
func resultSize(s *program.Step) (m, n int) {
	if s.Kind == ops.KindColumnSum {
		return 1, s.In[0].Columns
	}
	return s.In[0].Columns, s.In[1].Columns
}

// runSums computes rectangles lo to hi.
func (e *execution) runSums(lo, hi int) {
	s := e.scratch.take(0, 0)
	for i := lo; i < hi; i++ {
		s.t = tile{e: e, lo: e.lo, n: e.hi - e.lo, scratch: s}
		s.t.sum(&e.rectangles[i])
	}
	e.scratch.put(s)
}

// sum computes a rectangle. The tile is the whole block. If there are sums of columns, they read
// the operands of some examples in the order of memory, and the product then finds them in the
// cache.
func (t *tile) sum(r *rectangle) {
	s := r.step
	if s.Kind == ops.KindColumnSum {
		sumColumns(t.n, r, t.at(s.In[0]), t.e.lo > 0, t.at(s.Out[0]))
		return
	}
	x, dz, dw := t.at(s.In[0]), t.at(s.In[1]), t.at(s.Out[0])
	product := t.scratch.gemm.Gemm
	if t.e.precision.Rounds(x.columns, dz.columns) {
		product = t.scratch.gemm.GemmBF16
	}
	dw.data = dw.data[r.row*dw.stride+r.column:]
	examples := evenly(t.n, mostExamples, 2)
	for i := 0; i < t.n; i += examples {
		n, more := min(examples, t.n-i), t.e.lo+i > 0
		if len(s.Out) > 1 && r.row == 0 {
			sumColumns(n, r, matrix{dz.data[i*dz.stride:], dz.stride, dz.columns}, more, t.at(s.Out[1]))
		}
		a, b := x.data[i*x.stride+r.row:], dz.data[i*dz.stride+r.column:]
		if after := min(examples, t.n-i-n); after > 0 {
			t.scratch.gemm.Ahead(r.rows, r.columns, after, a[n*x.stride:], x.stride, b[n*dz.stride:], dz.stride)
		}
		product(true, false, r.rows, r.columns, n, a, x.stride, b, dz.stride, more, nil, dw.data, dw.stride)
	}
}

// sumColumns sums up the columns of a rectangle over n examples.
func sumColumns(n int, r *rectangle, x matrix, more bool, sums matrix) {
	kernel.ColSum(n, r.columns, x.data[r.column:], x.stride, more, sums.row(0)[r.column:][:r.columns])
}
