package kernel

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/cpu"
)

// usesPairs reports whether the level avx512 multiplies with VDPBF16PS. On a processor that has the
// instruction, this is measured before the first product in bfloat16. Tests change usesPairs.
var usesPairs = sync.OnceValue(func() bool { return hasBF16() && pairsAreFaster() })

// hasBF16 reports whether the processor has VDPBF16PS and it gives the required bits. It is the
// only instruction used whose rounding is defined by processor manuals and not by IEEE 754, so its
// results are compared with those of the other kernels.
var hasBF16 = sync.OnceValue(func() bool {
	return cpu.X86.HasAVX512BF16 && bestLevel >= levelAVX512 && agrees(levelAVX512, elementsPairs, elementsBF16)
})

// convertsBF16 reports whether numbers are converted to pairs with VCVTNE2PS2BF16. Tests change it.
var convertsBF16 = cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW && bestLevel >= levelAVX512

// pairsAreFaster reports whether VDPBF16PS multiplies a tile faster than float32 multiply-adds do.
// Zen 4 takes half of the time and Emerald Rapids twice the time, so a short measurement suffices:
// each kind of kernel runs a few times, alternately, and the fastest run counts. The choice affects
// only speed.
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
