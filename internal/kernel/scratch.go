package kernel

// Scratch computes matrix products on the goroutine that calls it, with memory of its own
// for packing: it starts no goroutines, and allocates nothing once it has computed products
// of the same sizes. The zero value is ready. One goroutine may use it at a time. The
// results are those of Gemm, bit for bit.
//
// All matrices are views of rows a stride apart, so that parts of columns (concatenations and
// slices) and of rows (tiles of a mini-batch) need no copies.
type Scratch struct {
	p    product
	gram []float32 // one example's pairs in Interact, as a square matrix
}

// Gemm is GemmEpilogue on the caller's goroutine; e may be nil.
func (s *Scratch) Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	s.p.gemm("Scratch.Gemm", false, transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
}

// Ahead makes the next product of s prefetch operands of the product after it, AᵀB: k rows of m columns
// of a, lda elements apart, and of n columns of b, ldb elements apart.
func (s *Scratch) Ahead(m, n, k int, a []float32, lda int, b []float32, ldb int) {
	s.p.setAhead(k, a, lda, m, b, ldb, n)
}

// GemmPacked computes C = op(A)·B, or C + op(A)·B if accumulate, and then e, on the
// caller's goroutine: see Gemm. B was packed before; n and k are its sizes. Several
// goroutines may use one PackedB at a time, each with a Scratch of its own.
func (s *Scratch) GemmPacked(transA bool, m int, a []float32, lda int, b *PackedB, accumulate bool, e *Epilogue, c []float32, ldc int) {
	if !checkProduct("Scratch.GemmPacked", transA, m, b.n, b.k, a, lda, accumulate, e, c, ldc) {
		return
	}
	switch {
	case b.level > levelPortable:
		s.p.vectorizedPacked(transA, m, a, lda, b, accumulate, e, c, ldc)
	case b.kind != elementsFloat:
		gemmBF16Portable(transA, false, m, b.n, b.k, a, lda, b.data, b.n, accumulate, e, c, ldc)
	default:
		gemmPortable(transA, false, m, b.n, b.k, a, lda, b.data, b.n, accumulate, e, c, ldc)
	}
}

// Bytes returns the memory that s holds for packing.
func (s *Scratch) Bytes() int {
	return s.p.bytes() + 4*cap(s.gram)
}

// PackedB is the right side of matrix products in the order in which the kernels read it.
// Pack a layer's weights once a step, and use them for all tiles of the mini-batch; the
// gradient of the layer's input needs the transposed weights, which are another PackedB.
// The zero value is ready for Pack.
type PackedB struct {
	level int32
	kind  elements
	k, n  int
	data  []float32
}

// Pack sets b to op(B) (k, n), where op(B) is the transpose of the (n, k) matrix x if
// transposed. Rows of x are ldx elements apart. It works on the caller's goroutine and
// allocates only where b was never as large before.
func (b *PackedB) Pack(transposed bool, k, n int, x []float32, ldx int) {
	b.packAs("PackedB.Pack", false, transposed, k, n, x, ldx)
}

func (b *PackedB) packAs(function string, bf16, transposed bool, k, n int, x []float32, ldx int) {
	rows, cols := k, n
	if transposed {
		rows, cols = n, k
	}
	checkMatrix(function, "x", rows, cols, len(x), ldx)
	l := level.Load()
	b.level, b.kind, b.k, b.n = l, elementsAt(l, bf16), k, n
	if k == 0 || n == 0 {
		b.data = b.data[:0]
		return
	}
	if b.level > levelPortable {
		b.pack(transposed, x, ldx)
		return
	}
	b.data = grow(b.data, k*n)
	for p := range k {
		row := b.data[p*n:][:n]
		if !transposed {
			copy(row, x[p*ldx:])
			continue
		}
		for j := range row {
			row[j] = x[j*ldx+p]
		}
	}
}

// Size returns the rows and columns of op(B).
func (b *PackedB) Size() (k, n int) { return b.k, b.n }

// Bytes returns the memory that b occupies.
func (b *PackedB) Bytes() int { return 4 * cap(b.data) }
