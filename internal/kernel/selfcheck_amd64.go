package kernel

import (
	"math"
	"sync"

	"golang.org/x/sys/cpu"
)

// hasBF16 tells whether the level avx512 multiplies by VDPBF16PS. That is the one
// instruction whose rounding processors describe in their own words, not in those of IEEE
// 754. So a processor that has it is asked, before the first product in bfloat16, whether its
// results are those of the other kernels; if not, it is left alone. Tests change hasBF16.
var hasBF16 = sync.OnceValue(func() bool {
	return cpu.X86.HasAVX512BF16 && bestLevel >= levelAVX512 && agrees(levelAVX512, elementsPairs, elementsBF16)
})

// agrees compares products of numbers of all sizes, denormal ones and sums that cancel
// among them, by two kinds of kernels of a level.
func agrees(l int32, one, other elements) bool {
	const m, n, k = 3, 32, 30
	a, b := make([]float32, m*k), make([]float32, k*n)
	var c [2][m * n]float32
	random := uint64(1)
	fill := func(x []float32, exponents, smallest uint32) {
		for i := range x {
			random = random*6364136223846793005 + 1442695040888963407
			bits := uint32(random >> 32)
			exponent := smallest + (bits>>8)%exponents
			x[i] = math.Float32frombits(bits&0x807fffff | exponent<<23)
		}
	}
	p := product{threads: 1}
	for range 60 {
		for _, sizes := range [][2]uint32{{3, 126}, {60, 97}, {255, 0}, {20, 60}, {4, 0}} {
			fill(a, sizes[0], sizes[1])
			fill(b, sizes[0], sizes[1])
			for i, kind := range []elements{one, other} {
				p.vectorized(l, kind, false, false, m, n, k, a, k, b, n, false, nil, c[i][:], n)
			}
			for i, x := range c[0] {
				if y := c[1][i]; math.Float32bits(x) != math.Float32bits(y) && (x == x || y == y) {
					return false
				}
			}
		}
	}
	return true
}
