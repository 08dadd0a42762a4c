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
	rows, cols := m, k
	if transA {
		rows, cols = k, m
	}
	checkMatrix("Gemm", "a", rows, cols, len(a), lda)
	rows, cols = k, n
	if transB {
		rows, cols = n, k
	}
	checkMatrix("Gemm", "b", rows, cols, len(b), ldb)
	checkMatrix("Gemm", "c", m, n, len(c), ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			for i := range m {
				clear(c[i*ldc:][:n])
			}
		}
		return
	}
	gemm(transA, transB, m, n, k, a, lda, b, ldb, accumulate, c, ldc)
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
