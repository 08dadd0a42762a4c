package kernel

import "unsafe"

// alignment of packed buffers in elements: a cache line, so that no vector
// crosses one.
const alignment = 16

// grow returns a slice of n elements that starts at a cache line, x if it is
// large enough. The contents are undefined.
func grow(x []float32, n int) []float32 {
	if cap(x) >= n {
		return x[:n]
	}
	x = make([]float32, n+n/4+alignment)
	skip := -int(uintptr(unsafe.Pointer(&x[0]))/floatBytes) & (alignment - 1)
	return x[skip:][:n]
}

// packing is a product as the task that packs its block of B: panels of one
// tile's width, in each the rows of B one after another. What lies beyond the
// last column is undefined; the kernels do not read it.
type packing product

func (p *packing) run(lo, hi int) {
	width := p.set.columns()
	for panel := lo; panel < hi; panel++ {
		j := panel * width
		dst := p.packed[j*p.steps:][:width*p.steps]
		columns := min(width, p.columns-j)
		if p.transB {
			transpose(dst, width, p.b[(p.column+j)*p.ldb+p.step:], p.ldb, columns, p.steps)
			continue
		}
		src := p.b[p.step*p.ldb+p.column+j:]
		for s := range p.steps {
			copy(dst[s*width:][:columns], src[s*p.ldb:])
		}
	}
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
func (w *worker) pack(p *product, height int) {
	w.group = height
	if !p.transA {
		stride := (p.steps + alignment - 1) &^ (alignment - 1)
		if stride/alignment%2 == 0 {
			stride += alignment
		}
		w.buf = grow(w.buf, w.rows*stride)
		for r := range w.rows {
			copy(w.buf[r*stride:][:p.steps], p.a[(w.row+r)*p.lda+p.step:])
		}
		w.t.aRow, w.t.aCol = floatBytes*uintptr(stride), floatBytes
		w.groupStep = uintptr(height) * w.t.aRow
	} else {
		wide := (height + 7) &^ 7
		groups := (w.rows + height - 1) / height
		w.buf = grow(w.buf, groups*wide*p.steps)
		for s := range p.steps {
			row := p.a[(p.step+s)*p.lda+w.row:]
			packRow(w.buf[s*wide:], wide, height, wide*p.steps, row, w.rows)
		}
		w.t.aRow, w.t.aCol = floatBytes, floatBytes*uintptr(wide)
		w.groupStep = floatBytes * uintptr(wide*p.steps)
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
