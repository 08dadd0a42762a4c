package kernel

import "math"

// FMA returns a*b + c rounded once to float32 (round to nearest, ties to
// even), as the hardware's fused multiply-add does.
//
// The product of two float32 is exact in float64 (24+24 bits of 53), so a
// compiler that fuses it with the sum changes nothing. Adding c rounds to 53
// bits, and rounding that once more to 24 bits is wrong only when the first
// rounding landed on a midpoint between two neighbouring float32. The midpoint
// of two normal float32 ends in a one and 28 zeros; that of two denormal ones
// can end in many patterns, so small sums all go the long way.
func FMA(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	if bits := math.Float64bits(s); bits&lowBits == midpoint || bits<<1 < smallest {
		return fmaMidpoint(a, b, c)
	}
	return float32(s)
}

const (
	lowBits  = 1<<29 - 1          // bits of a float64 beyond those of a float32
	midpoint = 1 << 28            // what they are halfway between two float32
	smallest = (1023 - 126) << 53 // bits of 2^-126, the smallest normal float32, without the sign
)

// fmaMidpoint is FMA where the sum in float64 may be a midpoint. An odd last bit of oddSum
// stands for "not a midpoint, the exact value lies beyond", and as float64 has
// more than two bits more than float32 the second rounding is exact.
func fmaMidpoint(x, y, z float32) float32 {
	return float32(oddSum(float64(x)*float64(y), float64(z)))
}

// oddSum returns p + c rounded to odd, for a product p of two float32 and a float32 c: if
// the sum is inexact and its last bit is even, it moves one unit towards the exact value.
func oddSum(p, c float64) float64 {
	s := p + c
	// Knuth's TwoSum: e is the exact error of s, unless s is Inf or NaN, where e
	// is NaN or nothing needs repair.
	t := s - p
	e := (p - (s - t)) + (c - t)
	if e != 0 && !math.IsInf(s, 0) && s == s {
		if bits := math.Float64bits(s); bits&1 == 0 {
			// s is not zero: a zero sum of such numbers is exact.
			if (e > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return s
}
