package kernel

import "fmt"

// Gemm computes C = op(A)·op(B), or C + op(A)·op(B) if accumulate, for
// row-major matrices of float32. op(A) is (m, k) and op(B) is (k, n), where
// op(X) is the transpose of X if the flag beside it is set:
//
//	a is (m, k), or (k, m) if transA; its rows are lda elements apart
//	b is (k, n), or (n, k) if transB; its rows are ldb elements apart
//	c is (m, n); its rows are ldc elements apart
//
// Each element of C is one chain of fused multiply-adds over ascending k that
// starts from +0, or from C if accumulate. Elements of c beyond column n stay
// as they are. c must not overlap a or b.
func Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	GemmEpilogue(transA, transB, m, n, k, a, lda, b, ldb, accumulate, nil, c, ldc)
}

// GemmEpilogue is Gemm with something done to each element of C at the end; e may be nil.
func GemmEpilogue(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	gemmOn(Threads(), "Gemm", false, transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
}

// elements says what the kernels multiply.
type elements uint8

const (
	elementsFloat elements = iota // float32, as they are
	elementsPairs                 // words of two bfloat16
	elementsBF16                  // float32 rounded to bfloat16, those of each pair exchanged
)

// elementsAt returns what the kernels of a level multiply.
func elementsAt(l int32, bf16 bool) elements {
	switch {
	case !bf16:
		return elementsFloat
	case l == levelAVX512 && usesPairs():
		return elementsPairs
	}
	return elementsBF16
}

// gemm checks the arguments of a product and computes it.
func (p *product) gemm(function string, bf16, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	checkB(function, transB, n, k, b, ldb)
	if !checkProduct(function, transA, m, n, k, a, lda, accumulate, e, c, ldc) {
		return
	}
	l := level.Load()
	switch {
	case l > levelPortable:
		p.vectorized(l, elementsAt(l, bf16), transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
	case bf16:
		gemmBF16Portable(transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
	default:
		gemmPortable(transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
	}
}

// checkB checks that b holds op(B) (k, n).
func checkB(function string, transB bool, n, k int, b []float32, ldb int) {
	rows, cols := k, n
	if transB {
		rows, cols = n, k
	}
	checkMatrix(function, "b", rows, cols, len(b), ldb)
}

// checkProduct checks the arguments of a product except B. It returns false if there is nothing to
// multiply; it has then already completed the call.
func checkProduct(function string, transA bool, m, n, k int, a []float32, lda int, accumulate bool, e *Epilogue, c []float32, ldc int) bool {
	rows, cols := m, k
	if transA {
		rows, cols = k, m
	}
	checkMatrix(function, "a", rows, cols, len(a), lda)
	checkMatrix(function, "c", m, n, len(c), ldc)
	e.check(function, m, n)
	if m == 0 || n == 0 {
		return false
	}
	if k > 0 {
		return true
	}
	for i := range m {
		row := c[i*ldc:][:n]
		if !accumulate {
			clear(row)
		}
		if !e.empty() {
			e.finishRow(i, 0, row)
		}
	}
	return false
}

// checkMatrix panics unless a slice of length elements holds a (rows, cols)
// matrix with rows stride elements apart.
func checkMatrix(function, name string, rows, cols, length, stride int) {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("kernel.%s: %s is (%d, %d)", function, name, rows, cols))
	}
	if rows == 0 || cols == 0 {
		return
	}
	if stride < cols || (rows-1)*stride+cols > length {
		panic(fmt.Sprintf("kernel.%s: %s is (%d, %d) with stride %d, which %d elements do not hold",
			function, name, rows, cols, stride, length))
	}
}
