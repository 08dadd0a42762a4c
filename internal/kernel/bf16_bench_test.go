package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkBF16 multiplies in float32 and in bfloat16 what a tile of 256 examples
// multiplies in the layers of CTR models (fw, and dx for the gradient of the input, both with
// packed weights), and what a block of 2,048 does (dw).
func BenchmarkBF16(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, layer := range [][2]int{{13, 512}, {512, 256}, {64, 16}, {367, 512}, {416, 128}, {256, 1}} {
		in, out := layer[0], layer[1]
		const tile, block = 256, 2048
		x, w, dz := ordinary(r, make([]float32, block*in)), ordinary(r, make([]float32, in*out)), ordinary(r, make([]float32, block*out))
		c := make([]float32, max(block*max(in, out), in*out))
		for _, bf16 := range []bool{false, true} {
			format := map[bool]string{false: "float32", true: "bf16"}[bf16]
			bench := func(what string, work int, f func()) {
				b.Run(fmt.Sprintf("%s/%dx%d/%s", what, in, out, format), func(b *testing.B) {
					for b.Loop() {
						f()
					}
					ReportLimits(b, b.N, Work{Threads: 1, FMAs: work})
				})
			}
			var s Scratch
			var weights, transposed PackedB
			weights.packAs("PackedB.Pack", bf16, false, in, out, w, out)
			transposed.packAs("PackedB.Pack", bf16, true, out, in, w, out)
			bench("fw", tile*in*out, func() { s.GemmPacked(false, tile, x, in, &weights, false, nil, c, out) })
			bench("dx", tile*in*out, func() { s.GemmPacked(false, tile, dz, out, &transposed, false, nil, c, in) })
			gemm := s.Gemm
			if bf16 {
				gemm = s.GemmBF16
			}
			bench("dw", block*in*out, func() { gemm(true, false, in, out, block, x, in, dz, out, false, nil, c, out) })
		}
	}
}
