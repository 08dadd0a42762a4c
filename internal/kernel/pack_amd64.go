package kernel

import "unsafe"

const floatBytes = 4

// packPanels packs the blocks of B in the phase. A panel has the width of one tile; in it the rows
// of B follow one another. What lies beyond the last column is undefined; the kernels do not
// read it.
func (p *product) packPanels() {
	for d := p.firstDepth; d < p.lastDepth; d++ {
		step, steps := depthBlock(d, p.k)
		if p.transB {
			for panel := range p.panels {
				p.packPanel(panel, step, steps)
			}
			continue
		}
		// A few rows of B at a time, so that they are read in the order of memory.
		for s := 0; s < steps; s += packSteps {
			p.prefetchRows(p.b, p.ldb, p.column, p.columns, step+s+packSteps)
			for panel := range p.panels {
				p.copyPanel(panel, step, steps, s, min(packSteps, steps-s))
			}
		}
	}
}

// packPanel packs some steps of a panel of a transposed B.
func (p *product) packPanel(panel, step, steps int) {
	width := p.set.columns()
	j := panel * width
	dst := p.packed[p.panelAt(panel, step, steps):][:width*steps]
	columns := min(width, p.columns-j)
	if p.kind != elementsFloat {
		p.packPanelBF16(dst, p.column+j, columns, step, steps)
		return
	}
	transpose(dst, width, p.b[(p.column+j)*p.ldb+step:], p.ldb, columns, steps)
}

// packSteps is how many steps of k are packed at a time. It is even.
const packSteps = 16

// copyPanel packs n of the steps of a panel, from step first of the block on.
func (p *product) copyPanel(panel, step, steps, first, n int) {
	width := p.set.columns()
	j := panel * width
	dst := p.packed[p.panelAt(panel, step, steps)+first*width:][:n*width]
	p.packRows(dst, width, p.b, p.ldb, p.column+j, min(width, p.columns-j), step+first, n)
}

// packRows packs n steps of columns of x, whose rows are those of the matrix along k, into
// rows of dst of the given width, from step on. What lies beyond the columns is undefined.
func (p *product) packRows(dst []float32, width int, x []float32, ldx, column, columns, step, n int) {
	if p.kind != elementsFloat {
		p.packRowsBF16(dst, width, x, ldx, column, columns, step, n)
		return
	}
	src := x[step*ldx+column:]
	if len(src) >= (n-1)*ldx+width {
		copyRows(dst, width, src, ldx, n)
		return
	}
	for i := range n {
		copy(dst[i*width:][:columns], src[i*ldx:])
	}
}

// copyRows copies n rows of 8, 16 or 32 elements, srcRow apart, to dst.
func copyRows(dst []float32, width int, src []float32, srcRow, n int) {
	_, _ = dst[:n*width], src[:(n-1)*srcRow+width]
	switch width {
	case 8:
		copyRows8AVX2(&dst[0], &src[0], floatBytes*srcRow, n)
	case 16:
		copyRows16AVX2(&dst[0], &src[0], floatBytes*srcRow, n)
	case 32:
		copyRows32AVX2(&dst[0], &src[0], floatBytes*srcRow, n)
	}
}

// prefetchRows prefetches columns of the rows of x that are packed next, from step first on:
// hardware prefetchers do not handle parts of rows that are far apart.
func (p *product) prefetchRows(x []float32, ldx, column, columns, first int) {
	if p.kind == elementsPairs {
		first *= 2
	}
	for i := first; i < min(first+packSteps, p.depth); i++ {
		prefetch(&x[i*ldx+column], columns)
	}
}

// panelAt returns where some steps of a panel are in p.packed.
func (p *product) panelAt(panel, step, steps int) int {
	return ((step-p.firstStep)*p.panels + panel*steps) * p.set.columns()
}

// transpose sets dst[p*dstRow+j] = src[j*srcRow+p] for j < rows and p < columns.
func transpose(dst []float32, dstRow int, src []float32, srcRow, rows, columns int) {
	j, whole := 0, columns&^7
	if whole > 0 {
		for ; j+8 <= rows; j += 8 {
			transpose8AVX2(&dst[j], dstRow*floatBytes, &src[j*srcRow], srcRow*floatBytes, whole/8)
			for r := j; r < j+8; r++ {
				for p := whole; p < columns; p++ {
					dst[p*dstRow+r] = src[r*srcRow+p]
				}
			}
		}
	}
	for ; j < rows; j++ {
		for p, v := range src[j*srcRow:][:columns] {
			dst[p*dstRow+j] = v
		}
	}
}

// pack copies the unit's part of op(A), so that it lies close together in the
// order in which the kernels read it.
//
// Rows of an ordinary matrix are copied as they are, an odd number of cache
// lines apart: rows a power of two apart would all fall into one set of the L1
// cache. Of a transposed matrix, where the rows of op(A) lie side by side,
// groups of one tile's height are copied, rounded up to whole vectors.
func (w *worker) pack(p *product, height, step, steps int) {
	w.group = height
	if !p.transA {
		stride := (steps + alignment - 1) &^ (alignment - 1)
		if stride/alignment%2 == 0 {
			stride += alignment
		}
		w.buf = grow(w.buf, w.rows*stride)
		for r := range w.rows {
			p.copySteps(w.buf[r*stride:][:steps], p.a[(w.row+r)*p.lda:][:p.depth], step)
		}
		w.t.aRow, w.t.aCol = floatBytes*uintptr(stride), floatBytes
		w.groupStep = uintptr(height) * w.t.aRow
	} else {
		wide := (height + 7) &^ 7
		groups := (w.rows + height - 1) / height
		w.buf = grow(w.buf, groups*wide*steps)
		for s := 0; s < steps; s += packSteps {
			p.prefetchRows(p.a, p.lda, w.row, w.rows, step+s+packSteps)
			for g := range groups {
				p.packRows(w.buf[(g*steps+s)*wide:], wide, p.a, p.lda, w.row+g*height, min(height, w.rows-g*height), step+s, min(packSteps, steps-s))
			}
		}
		w.t.aRow, w.t.aCol = floatBytes, floatBytes*uintptr(wide)
		w.groupStep = floatBytes * uintptr(wide*steps)
	}
	w.a = unsafe.Pointer(&w.buf[0])
}
