package kernel

// dots sets the lower triangle of gram to the products of the vectors. They are the product
// of the vectors with their transpose, whose tiles above the diagonal are left out.
func (s *Scratch) dots(f, d int, vectors []float32) {
	l := level.Load()
	if l == levelPortable || d == 0 {
		s.dotsPortable(f, d, vectors)
		return
	}
	p := &s.p
	p.setElements(l, elementsFloat, d)
	stride := (f + alignment - 1) &^ (alignment - 1)
	p.buf = grow(p.buf, d*stride)
	transpose(p.buf, stride, vectors, d, f, d)
	width := p.set.columns()
	for j := 0; j < f-1; j += width {
		p.tiles(j+1, f, j, min(width, f-1-j), d, vectors, d, p.buf, stride, s.gram, f)
	}
}

// mix sets out to gram·vectors.
func (s *Scratch) mix(f, d int, vectors, out []float32) {
	l := level.Load()
	if l == levelPortable {
		s.mixPortable(f, d, vectors, out)
		return
	}
	p := &s.p
	p.setElements(l, elementsFloat, f)
	width := p.set.columns()
	for j := 0; j < d; j += width {
		p.tiles(0, f, j, min(width, d-j), f, s.gram, f, vectors, d, out, d)
	}
}

// tiles computes rows lo to hi of at most a tile's columns from column on, of the
// product of small matrices as they lie: C = A·B over k.
func (p *product) tiles(lo, hi, column, columns, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	t := &p.own.t
	*t = tile{k: k, aRow: floatBytes * uintptr(lda), aCol: floatBytes, b: at(b, column), bRow: floatBytes * uintptr(ldb),
		cRow: floatBytes * uintptr(ldc)}
	vectors := (columns + p.set.vector - 1) / p.set.vector
	t.lanes = columns - (vectors-1)*p.set.vector
	for r, i := lo, 0; r < hi; {
		for p.set.kernels[i].rows > hi-r {
			i++
		}
		kernel := &p.set.kernels[i]
		t.a, t.c = at(a, r*lda), at(c, r*ldc+column)
		if t.lanes == p.set.vector {
			kernel.full[vectors-1](t)
		} else {
			kernel.part[vectors-1](t)
		}
		r += kernel.rows
	}
	*t = tile{}
}
