package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gflops reports billions of floating-point operations per second, a fused
// multiply-add counting as two.
func gflops(b *testing.B, fma int) {
	b.ReportMetric(2*float64(fma)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

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
	peaks := map[string]float64{}
	for _, level := range Levels()[1:] {
		atLevel(b, level, func() {
			for threads := 1; threads <= 2; threads++ {
				peaks[fmt.Sprint(level, threads)] = PeakFMA(threads)
			}
		})
	}
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
					})
					gflops(b, s.m*s.n*s.k)
					rate := float64(s.m*s.n*s.k) * float64(b.N) / b.Elapsed().Seconds()
					b.ReportMetric(rate/peaks[fmt.Sprint(level, threads)], "of-peak")
				})
			}
		}
		b.Run(name+"/gonum", func(b *testing.B) {
			for b.Loop() {
				gonum.Implementation{}.Sgemm(ta, tb, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, c, s.n)
			}
			gflops(b, s.m*s.n*s.k)
		})
	}
}
