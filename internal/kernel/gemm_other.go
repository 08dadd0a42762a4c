//go:build !amd64

package kernel

// product is a matrix product; it has state on amd64 only.
type product struct{}

// usesPairs is asked at levels that do not exist here.
func usesPairs() bool { return false }

func (p *product) bytes() int { return 0 }

func (p *product) setAhead(k int, a []float32, lda, m int, b []float32, ldb, n int) {}

func (p *product) vectorized(_ int32, _ elements, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	panic("kernel: no level but the portable one exists here")
}

func (p *product) vectorizedPacked(transA bool, m int, a []float32, lda int, b *PackedB, accumulate bool, e *Epilogue, c []float32, ldc int) {
	panic("kernel: no level but the portable one exists here")
}

func (b *PackedB) pack(_ bool, _ []float32, _ int) {
	panic("kernel: no level but the portable one exists here")
}
