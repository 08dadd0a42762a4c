package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestInteract holds every level against products with the whole matrices, which is how
// the interaction is defined.
func TestInteract(t *testing.T) {
	r := seeded(t, 12)
	var s Scratch
	for range rounds(200) {
		n, f := r.IntN(4), []int{1, 2, 3, 5, 8, 15, 17, 27, 33, 40}[r.IntN(10)]
		d := []int{1, 4, 8, 10, 16, 16, 16, 17, 32, 48}[r.IntN(10)]
		pairs := Pairs(f)
		ldx, ldy, lddx := f*d+r.IntN(4), pairs+r.IntN(4), f*d+r.IntN(4)
		fill := ordinary
		if r.IntN(4) == 0 {
			fill = anything
		}
		x, dy := fill(r, make([]float32, n*ldx)), fill(r, make([]float32, n*ldy))
		y, dx := fill(r, make([]float32, n*ldy)), fill(r, make([]float32, n*lddx))
		wantY, wantDX := append([]float32(nil), y...), append([]float32(nil), dx...)
		atLevel(t, "portable", func() {
			gram := make([]float32, f*f)
			for i := range n {
				vectors := x[i*ldx:][:f*d]
				Gemm(false, true, f, f, d, vectors, d, vectors, d, false, gram, f)
				square := make([]float32, f*f)
				for v := range f {
					for w := range v {
						wantY[i*ldy+Pairs(v)+w] = gram[v*f+w]
						square[v*f+w], square[w*f+v] = dy[i*ldy+Pairs(v)+w], dy[i*ldy+Pairs(v)+w]
					}
				}
				Gemm(false, false, f, d, f, square, f, vectors, d, false, wantDX[i*lddx:], d)
			}
		})
		for _, level := range Levels() {
			atLevel(t, level, func() {
				what := fmt.Sprintf("%s: %d examples of %d vectors of %d", level, n, f, d)
				got := append([]float32(nil), y...)
				s.Interact(n, f, d, x, ldx, got, ldy)
				wantSame(t, what, wantY, got)
				got = append([]float32(nil), dx...)
				s.InteractBackward(n, f, d, x, ldx, dy, ldy, got, lddx)
				wantSame(t, what+", backward", wantDX, got)
			})
		}
	}
}

// BenchmarkInteract is DLRM's interaction of 27 vectors of 16 over 256 examples.
func BenchmarkInteract(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	const n, f, d = 256, 27, 16
	x, y, dx := ordinary(r, make([]float32, n*f*d)), make([]float32, n*Pairs(f)), make([]float32, n*f*d)
	var s Scratch
	for _, level := range Levels()[1:] {
		b.Run("forward/"+level, func(b *testing.B) {
			atLevel(b, level, func() {
				for b.Loop() {
					s.Interact(n, f, d, x, f*d, y, Pairs(f))
				}
				ReportLimits(b, b.N, Work{Threads: 1, FMAs: n * Pairs(f) * d})
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/example")
		})
		b.Run("backward/"+level, func(b *testing.B) {
			atLevel(b, level, func() {
				for b.Loop() {
					s.InteractBackward(n, f, d, x, f*d, y, Pairs(f), dx, f*d)
				}
				ReportLimits(b, b.N, Work{Threads: 1, FMAs: 2 * n * Pairs(f) * d})
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/example")
		})
		b.Run("generic/"+level, func(b *testing.B) {
			gram := make([]float32, f*f)
			atLevel(b, level, func() {
				for b.Loop() {
					for i := range n {
						v := x[i*f*d:][:f*d]
						s.Gemm(false, true, f, f, d, v, d, v, d, false, nil, gram, f)
					}
				}
				ReportLimits(b, b.N, Work{Threads: 1, FMAs: n * Pairs(f) * d})
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/example")
		})
	}
}
