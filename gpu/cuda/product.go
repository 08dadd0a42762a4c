//go:build nvidia && linux && amd64

package cuda

// #cgo noescape aibox_blas_gemm
// #cgo nocallback aibox_blas_gemm
// #include "libraries.h"
import "C"

import (
	"math"

	"aibox/gpu"
)

// Multiply implements gpu.Stream.
func (s *stream) Multiply(p gpu.Product) error {
	err := s.multiply(&p)
	if err == nil {
		return nil
	}
	return s.failed(p.String(), err)
}

func (s *stream) multiply(p *gpu.Product) error {
	d := s.dev
	if err := d.ready(); err != nil {
		return err
	}
	a, b, c, err := s.operands(p)
	if err != nil {
		return err
	}
	switch {
	case p.Epilogue.Any():
		return s.multiplyFused(p, a, b, c)
	case count(c) == 0:
		return nil
	case p.K == 0:
		return s.fill(c, 0)
	case tooLarge(p, a, b, c):
		return gpu.Invalid("a product of sizes or strides above %d", math.MaxInt32)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	g := gemm(p, a, b, c)
	if s.capture != nil {
		s.capture.add(p.String(), p.Args(a, b, c), func(l *lane) error { return d.gemm(l, g) })
		return nil
	}
	return d.gemm(&s.lane, g)
}

func (d *device) gemm(l *lane, g C.aibox_gemm_t) error {
	return d.checkBlas(C.aibox_blas_gemm(d.ctx, l.blas.handle, &g))
}

// operands checks the regions that a product uses, and returns those of its matrices.
func (s *stream) operands(p *gpu.Product) (a, b, c gpu.Region, err error) {
	if a, b, c, err = p.Regions(); err != nil {
		return a, b, c, err
	}
	for i, r := range regionsOf(p, a, b, c) {
		if r.Memory == nil {
			continue
		}
		if _, err := s.local([...]string{"A", "B", "C", "Bias"}[i], r); err != nil {
			return a, b, c, err
		}
	}
	return a, b, c, nil
}

// regionsOf are the regions of a product and its bias, which may have no memory.
func regionsOf(p *gpu.Product, a, b, c gpu.Region) [4]gpu.Region {
	return [...]gpu.Region{a, b, c, p.Epilogue.Bias}
}

// tooLarge reports whether a product has sizes or strides beyond cuBLAS's integers.
func tooLarge(p *gpu.Product, a, b, c gpu.Region) bool {
	return max(p.M, p.N, p.K, leading(p.A, a), leading(p.B, b), leading(p.C, c)) > math.MaxInt32
}

// leading returns the stride of a matrix; for a single row it is at least the row's length, as
// cuBLAS requires.
func leading(m gpu.Matrix, r gpu.Region) int {
	if r.Rows <= 1 {
		return max(m.Stride, r.Width/4, r.Width/2, 1) // whatever the size of an element
	}
	return max(m.Stride, 1)
}

// gemm converts the product to cuBLAS's column-major form: cuBLAS sees the transpose of each
// matrix, so it computes Cᵀ = op(B)ᵀ·op(A)ᵀ, with the operands exchanged.
func gemm(p *gpu.Product, a, b, c gpu.Region) C.aibox_gemm_t {
	g := C.aibox_gemm_t{
		trans_a: flag(p.TransB), trans_b: flag(p.TransA), m: C.int(p.N), n: C.int(p.M), k: C.int(p.K),
		a: addressOf(b), b: addressOf(a), c: addressOf(c),
		lda: C.int(leading(p.B, b)), ldb: C.int(leading(p.A, a)), ldc: C.int(leading(p.C, c)),
		_type: C.CUDA_R_32F, result: C.CUDA_R_32F, compute: C.CUBLAS_COMPUTE_32F,
	}
	if p.Round {
		g.result = C.CUDA_R_16BF
	}
	switch p.Precision {
	case gpu.TF32Product:
		g.compute = C.CUBLAS_COMPUTE_32F_FAST_TF32
	case gpu.BF16Product:
		g._type = C.CUDA_R_16BF
	}
	return g
}

func addressOf(r gpu.Region) C.uint64_t {
	return C.uint64_t(bare(r.Memory).address) + C.uint64_t(r.Offset)
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
