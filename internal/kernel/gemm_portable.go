package kernel

// gemmPortable is Gemm by the definition.
func gemmPortable(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		if !accumulate {
			clear(row)
		}
		// Element (i, p) of op(A) is a[at+p*step].
		at, step := i*lda, 1
		if transA {
			at, step = i, lda
		}
		if transB {
			for j := range row {
				s, col := row[j], b[j*ldb:][:k]
				for p, v := range col {
					s = FMA(a[at+p*step], v, s)
				}
				row[j] = s
			}
		} else {
			for p := range k {
				axpyPortable(row, b[p*ldb:][:n], a[at+p*step])
			}
		}
		if !e.empty() {
			e.finishRow(i, 0, row)
		}
	}
}
