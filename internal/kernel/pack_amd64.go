package kernel

import "unsafe"

const floatBytes = 4

// packing is a product as the task that packs its blocks of B, each panel from its first
// step to its last. A panel has the width of one tile; in it the rows of B follow one
// another. What lies beyond the last column is undefined; the kernels do not read it.
type packing product

func (p *packing) run(lo, hi int) {
	for panel := lo; panel < hi; panel++ {
		for d := p.firstDepth; d < p.lastDepth; d++ {
			step, steps := depthBlock(d, p.k)
			(*product)(p).packPanel(panel, step, steps)
		}
	}
}

// packPanel packs some steps of a panel.
func (p *product) packPanel(panel, step, steps int) {
	width := p.set.columns()
	j := panel * width
	dst := p.packed[p.panelAt(panel, step, steps):][:width*steps]
	columns := min(width, p.columns-j)
	if p.kind != elementsFloat {
		p.packPanelBF16(dst, p.column+j, columns, step, steps)
		return
	}
	if p.transB {
		transpose(dst, width, p.b[(p.column+j)*p.ldb+step:], p.ldb, columns, steps)
		return
	}
	src := p.b[step*p.ldb+p.column+j:]
	for s := range steps {
		copy(dst[s*width:][:columns], src[s*p.ldb:])
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
		for s := range steps {
			var row []float32
			if p.kind == elementsFloat {
				row = p.a[(step+s)*p.lda+w.row:]
			} else {
				w.line = grow(w.line, w.rows)
				row = w.line
				p.stepAcross(row, p.a, p.lda, w.row, step+s)
			}
			packRow(w.buf[s*wide:], wide, height, wide*steps, row, w.rows)
		}
		w.t.aRow, w.t.aCol = floatBytes, floatBytes*uintptr(wide)
		w.groupStep = floatBytes * uintptr(wide*steps)
	}
	w.a = unsafe.Pointer(&w.buf[0])
}

// packRow copies n elements of row to groups of height elements, the groups
// groupStep elements apart in dst. A group has room for wide elements, 8 or 16;
// where row has that many it copies them all, which takes no call.
func packRow(dst []float32, wide, height, groupStep int, row []float32, n int) {
	from, to := 0, 0
	switch wide {
	case 8:
		for ; from < n && from+8 <= len(row); from += height {
			*(*[8]float32)(dst[to:]) = *(*[8]float32)(row[from:])
			to += groupStep
		}
	case 16:
		for ; from < n && from+16 <= len(row); from += height {
			*(*[16]float32)(dst[to:]) = *(*[16]float32)(row[from:])
			to += groupStep
		}
	}
	for ; from < n; from += height {
		copy(dst[to:][:min(height, n-from)], row[from:])
		to += groupStep
	}
}
