//go:build !amd64

package kernel

func gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	gemmPortable(transA, transB, m, n, k, a, lda, b, ldb, accumulate, c, ldc)
}
