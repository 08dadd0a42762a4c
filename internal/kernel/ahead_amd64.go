package kernel

import "unsafe"

// aheadSteps is the number of steps of k after which the highest kernels prefetch a cache line: at
// least as many lines as usual products need, and few enough that the kernels hardly wait for them.
const aheadSteps = 2

// ahead prefetches the operands of the next product into the second-level cache while the kernels
// multiply those of the current one. Hardware prefetchers do not: parts of rows far apart from one
// another are no streams to them, and what was written a mini-batch's forward pass ago has left the
// second-level cache.
type ahead struct {
	matrices          [2]matrixAhead
	matrix, line, row int // what is prefetched next
}

// matrixAhead is some columns of a row-major matrix.
type matrixAhead struct {
	first uintptr // address of the first cache line of the first row
	lines int     // cache lines in a row
	rows  int
	row   uintptr // bytes between rows
}

const lineBytes = alignment * floatBytes

// linesOf returns the lines that columns of some rows of x occupy.
func linesOf(x []float32, ldx, columns, rows int) matrixAhead {
	if rows == 0 || columns == 0 {
		return matrixAhead{}
	}
	begin := uintptr(unsafe.Pointer(&x[0]))
	first := begin &^ (lineBytes - 1)
	lines := (int(begin-first) + floatBytes*columns + lineBytes - 1) / lineBytes
	row := floatBytes * uintptr(ldx)
	if row%lineBytes != 0 {
		lines++ // other rows may begin further back in a line than the first
	}
	return matrixAhead{first, lines, rows, row}
}

// next tells the kernels what to prefetch in a call of that many steps: one line of each of some rows.
func (a *ahead) next(t *tile, steps int) {
	for ; a.matrix < len(a.matrices); a.matrix++ {
		m := &a.matrices[a.matrix]
		if a.line == m.lines {
			a.line = 0
			continue
		}
		t.ahead, t.aheadRow = m.first+uintptr(a.line)*lineBytes+uintptr(a.row)*m.row, m.row
		// A call that passes the last row prefetches a few lines too many.
		if a.row += (steps - 1) / aheadSteps; a.row >= m.rows {
			a.row = 0
			a.line++
		}
		return
	}
	t.ahead, t.aheadRow = uintptr(unsafe.Pointer(t)), 0 // a line that is in the cache anyway
}

// setAhead sets what the next product prefetches.
func (p *product) setAhead(k int, a []float32, lda, m int, b []float32, ldb, n int) {
	p.ahead = ahead{matrices: [2]matrixAhead{linesOf(a, lda, m, k), linesOf(b, ldb, n, k)}}
}
