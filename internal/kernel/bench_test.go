package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BenchmarkLimits measures what the processor can do at most: fused multiply-adds on
// registers, and reading from each cache and from memory.
func BenchmarkLimits(b *testing.B) {
	for _, level := range Levels()[1:] {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("fma/%s-%d", level, threads), func(b *testing.B) {
				atLevel(b, level, func() {
					peak := 0.0
					for b.Loop() {
						peak = max(peak, PeakFMA(threads))
					}
					b.ReportMetric(2e-9*peak, "GFLOP/s")
				})
			})
		}
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"16KiB", 4 << 10}, {"256KiB", 64 << 10}, {"4MiB", 1 << 20}, {"256MiB", 64 << 20}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("read/%s-%d", size.name, threads), func(b *testing.B) {
				most := 0.0
				for b.Loop() {
					most = max(most, ReadBandwidth(threads, size.n))
				}
				b.ReportMetric(1e-9*most, "GB/s")
			})
		}
	}
}

// BenchmarkGemm multiplies (m, k) by (k, n) for shapes of CTR models; nt is the
// gradient of a layer's input, tn that of its weights. Beside the speed stands its share of
// the processor's peak.
func BenchmarkGemm(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, s := range []struct {
		m, n, k        int
		transA, transB bool
	}{
		{m: 2048, n: 2048, k: 2048},
		{m: 2048, n: 512, k: 429},
		{m: 2048, n: 429, k: 512, transB: true},
		{m: 429, n: 512, k: 2048, transA: true},
		{m: 4096, n: 512, k: 256},
		{m: 2048, n: 512, k: 13},
		{m: 2048, n: 64, k: 16},
		{m: 256, n: 128, k: 429},
		{m: 256, n: 429, k: 128, transB: true},
		{m: 429, n: 128, k: 256, transA: true},
		{m: 256, n: 64, k: 128},
		{m: 2048, n: 1, k: 256},
		{m: 2048, n: 256, k: 1, transB: true},
		{m: 256, n: 1, k: 2048, transA: true},
	} {
		x := ordinary(r, make([]float32, s.m*s.k))
		y := ordinary(r, make([]float32, s.k*s.n))
		c := make([]float32, s.m*s.n)
		lda, ldb := s.k, s.n
		ta, tb := blas.NoTrans, blas.NoTrans
		suffix := []byte("nn")
		if s.transA {
			lda, ta, suffix[0] = s.m, blas.Trans, 't'
		}
		if s.transB {
			ldb, tb, suffix[1] = s.k, blas.Trans, 't'
		}
		name := fmt.Sprintf("%dx%dx%d%s", s.m, s.n, s.k, suffix)
		for _, level := range Levels()[1:] {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s-%d", name, level, threads), func(b *testing.B) {
					defer SetThreads(0)
					SetThreads(threads)
					atLevel(b, level, func() {
						for b.Loop() {
							Gemm(s.transA, s.transB, s.m, s.n, s.k, x, lda, y, ldb, false, c, s.n)
						}
						ReportLimits(b, b.N, Work{Threads: threads, FMAs: s.m * s.n * s.k})
					})
				})
			}
		}
		b.Run(name+"/gonum", func(b *testing.B) {
			for b.Loop() {
				gonum.Implementation{}.Sgemm(ta, tb, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, c, s.n)
			}
			ReportLimits(b, b.N, Work{Threads: 1, FMAs: s.m * s.n * s.k})
		})
	}
}

// BenchmarkVectors is the functions that work on vectors elementwise or sum them up, on
// vectors that the second-level cache holds, as those of a tile.
func BenchmarkVectors(b *testing.B) {
	const n = 16 << 10
	r := rand.New(rand.NewPCG(1, 0))
	var x [4][]float32
	for i := range x {
		x[i] = ordinary(r, make([]float32, n))
	}
	out, y, z, w := x[0], x[1], x[2], x[3]
	const rows = 64
	sums := make([]float32, n/rows)
	for _, v := range []struct {
		name    string
		vectors int // that are read or written
		run     func()
	}{
		{"Add", 3, func() { Add(out, y) }},
		{"Mul", 3, func() { Mul(out, y, z) }},
		{"MulThenAdd", 4, func() { MulThenAdd(out, y, z, w) }},
		{"ScaleTo", 2, func() { ScaleTo(out, 0.5, y) }},
		{"Axpy", 3, func() { Axpy(1e-9, y, out) }},
		{"Relu", 2, func() { Relu(out, y) }},
		{"ReluBackward", 3, func() { ReluBackward(out, y, z) }},
		{"Sigmoid", 2, func() { SigmoidSlice(out, y) }},
		{"SigmoidBackward", 3, func() { SigmoidBackward(out, y, z) }},
		{"Tanh", 2, func() { TanhSlice(out, y) }},
		{"TanhBackward", 3, func() { TanhBackward(out, y, z) }},
		{"Softplus", 2, func() { SoftplusSlice(out, y) }},
		{"Sum", 1, func() { limitSink.Store(uint32(Sum(y))) }},
		{"Dot", 2, func() { limitSink.Store(uint32(Dot(y, z))) }},
		{"ColSum", 1, func() { ColSum(rows, n/rows, y, n/rows, false, sums) }},
	} {
		for _, level := range Levels()[1:] {
			b.Run(v.name+"/"+level, func(b *testing.B) {
				defer SetThreads(0)
				SetThreads(1)
				atLevel(b, level, func() {
					for b.Loop() {
						v.run()
					}
					ReportLimits(b, b.N, Work{Threads: 1, Bytes: 4 * v.vectors * n})
				})
			})
		}
	}
}
