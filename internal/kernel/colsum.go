package kernel

// ColSum sets out[j] to the sum over i of x[i,j], the gradient of a bias. x is
// (m, n) with rows ldx elements apart. Each column is one chain of additions
// over ascending rows, starting from +0, or from out[j] if accumulate. It works on the
// caller's goroutine.
func ColSum(m, n int, x []float32, ldx int, accumulate bool, out []float32) {
	checkMatrix("ColSum", "x", m, n, len(x), ldx)
	sameLength("ColSum", n, len(out))
	if !accumulate {
		clear(out)
	}
	for i := range m {
		addRow(out, x[i*ldx:][:n])
	}
}
