package kernel

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/cpu"
)

// usesPairs tells whether the level avx512 multiplies by VDPBF16PS. A processor that has the
// instruction is asked before the first product in bfloat16. Tests change usesPairs.
var usesPairs = sync.OnceValue(func() bool { return hasBF16() && pairsAreFaster() })

// hasBF16 tells whether the processor has VDPBF16PS with the bits that are wanted. It is the one
// instruction whose rounding processors describe in their own words, not in those of IEEE
// 754, so its results are compared with those of the other kernels.
var hasBF16 = sync.OnceValue(func() bool {
	return cpu.X86.HasAVX512BF16 && bestLevel >= levelAVX512 && agrees(levelAVX512, elementsPairs, elementsBF16)
})

// convertsBF16 tells whether numbers become pairs by VCVTNE2PS2BF16. Tests change it.
var convertsBF16 = cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW && bestLevel >= levelAVX512

// pairsAreFaster tells whether a tile is multiplied faster by VDPBF16PS than by multiply-adds of
// float32. Zen 4 takes half of the time, Emerald Rapids twice the time, so a short
// measurement tells: each kind of kernel a few times in turn, the fastest of which counts. The
// choice decides about speed alone.
func pairsAreFaster() bool {
	const k = 256 // of float32; A and B fit into the first-level cache
	width := tiles512.columns()
	a, b := grow(nil, k), grow(nil, k*width)
	c := make([]float32, tiles512.kernels[0].rows*width)
	fastest := func(kernel func(*tile), k int, best time.Duration) time.Duration {
		t := tile{a: at(a, 0), b: at(b, 0), c: at(c, 0), k: k, aCol: floatBytes, bRow: floatBytes * uintptr(width),
			cRow: floatBytes * uintptr(width), lanes: tiles512.vector}
		begin := time.Now()
		for range 4 {
			kernel(&t)
		}
		return min(best, time.Since(begin))
	}
	floats, pairs := time.Hour, time.Hour
	for range 20 {
		floats = fastest(tiles512.kernels[0].full[1], k, floats)
		pairs = fastest(tilesBF16.kernels[0].full[1], k/2, pairs)
	}
	return pairs < floats
}

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
	var p product
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
