package cpu

import (
	"cmp"
	"slices"

	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Gradients of weights and biases are cut into rectangles, rows and columns of dW = xᵀ·dz, each
// of which one thread computes from the first example to the last. So the threads share no
// packed operands and do not wait for one another between two products, and what a
// thread packs of some examples stays in its second-level cache until it is used.

const (
	// A rectangle has at most about so many rows and columns: with the operands of 384
	// examples, 4·(256·512 + 384·(256 + 512)) bytes = 1.6 MiB.
	mostRows    = 256
	mostColumns = 512
	// mostExamples is how many examples are summed up at a time.
	mostExamples = 384
	// rectanglesPerThread is how many rectangles each thread should get at least, so that all
	// end together.
	rectanglesPerThread = 3
	// fewestElements is the size below which a rectangle is not cut further: the smaller it is,
	// the larger is the share of packing.
	fewestElements = 112 * 128
)

// rectangle is some rows and columns of the result of a step.
type rectangle struct {
	step                       *program.Step
	row, rows, column, columns int
}

// sumUp runs reductions that do not depend on one another over the current block. It goes
// on from the results of the block before.
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

// rectangleSize decides how many rows and columns rectangles have at most, for results of so many
// elements.
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

// evenly returns how long the parts of n are, a multiple of unit: as few parts as have at most
// about most each.
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

// sum computes a rectangle. The tile is the whole block. What it needs of some examples is read
// in the order of memory by the sums of columns, if there are any, and then found in the cache.
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
		dz := matrix{dz.data[i*dz.stride:], dz.stride, dz.columns}
		if len(s.Out) > 1 && r.row == 0 {
			sumColumns(n, r, dz, more, t.at(s.Out[1]))
		}
		product(true, false, r.rows, r.columns, n, x.data[i*x.stride+r.row:], x.stride, dz.data[r.column:], dz.stride, more, nil, dw.data, dw.stride)
	}
}

// sumColumns sums up the columns of a rectangle over n examples.
func sumColumns(n int, r *rectangle, x matrix, more bool, sums matrix) {
	kernel.ColSum(n, r.columns, x.data[r.column:], x.stride, more, sums.row(0)[r.column:][:r.columns])
}
