package kernel

import "math"

// VDPBF16PS is the one instruction whose rounding processors describe in their own words,
// not in those of IEEE 754. So a processor that has it is asked at start whether its results
// are those of the other kernels; if not, it is left alone. Package initialization runs this
// after that of level.go.
func init() {
	if hasBF16 && bestLevel >= levelAVX512 && !agreesBF16() {
		hasBF16 = false
	}
}

// agreesBF16 compares products of numbers of all sizes, denormal ones and sums that cancel
// among them, with and without VDPBF16PS.
func agreesBF16() bool {
	now := level.Load()
	level.Store(levelAVX512)
	defer func() {
		level.Store(now)
		hasBF16 = true
	}()
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
	var s Scratch
	for range 60 {
		for _, sizes := range [][2]uint32{{3, 126}, {60, 97}, {255, 0}, {20, 60}, {4, 0}} {
			fill(a, sizes[0], sizes[1])
			fill(b, sizes[0], sizes[1])
			for with := range c {
				hasBF16 = with == 1
				s.GemmBF16(false, false, m, n, k, a, k, b, n, false, nil, c[with][:], n)
			}
			for i, x := range c[0] {
				y := c[1][i]
				if math.Float32bits(x) != math.Float32bits(y) && (x == x || y == y) {
					return false
				}
			}
		}
	}
	return true
}
