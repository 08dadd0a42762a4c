package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAhead computes rectangles of gradients of weights as the engine does: over mini-batches of 2,048
// examples, 128 at a time. They take turns over five mini-batches, which the second-level cache does
// not hold, with and without prefetching the next 128 examples.
func BenchmarkAhead(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, s := range []struct{ in, out, rows, columns int }{{416, 128, 112, 128}, {128, 64, 128, 64}, {512, 256, 128, 256}, {480, 512, 240, 256}} {
		const batch, batches, examples = 2048, 5, 128
		x, dz := ordinary(r, make([]float32, batches*batch*s.in)), ordinary(r, make([]float32, batches*batch*s.out))
		dw := make([]float32, s.in*s.out)
		for _, bf16 := range []bool{false, true} {
			var scratch Scratch
			gemm := scratch.Gemm
			if bf16 {
				gemm = scratch.GemmBF16
			}
			for _, ahead := range []bool{false, true} {
				first := 0
				b.Run(fmt.Sprintf("%dx%d of %dx%d/bf16=%v/ahead=%v", s.rows, s.columns, s.in, s.out, bf16, ahead), func(b *testing.B) {
					for b.Loop() {
						for i := 0; i < batch; i += examples {
							at := first + i
							if next := at + examples; ahead && i+examples < batch {
								scratch.Ahead(s.rows, s.columns, examples, x[next*s.in:], s.in, dz[next*s.out:], s.out)
							}
							gemm(true, false, s.rows, s.columns, examples, x[at*s.in:], s.in, dz[at*s.out:], s.out, i > 0, nil, dw, s.out)
						}
						first = (first + batch) % (batches * batch)
					}
					ReportLimits(b, b.N, Work{Threads: 1, FMAs: batch * s.rows * s.columns})
				})
			}
		}
	}
}
