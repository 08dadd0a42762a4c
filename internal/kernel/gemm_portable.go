package kernel

// portableGrain is how many multiply-adds make a range worth a goroutine: at
// one to three nanoseconds each.
const portableGrain = 16 << 10

// gemmPortable is Gemm by the definition, rows of C in parallel on a number of threads.
func gemmPortable(threads int, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	parallelOn(threads, m, max(1, portableGrain/(n*k)), ranger(func(lo, hi int) {
		for i := lo; i < hi; i++ {
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
	}))
}
