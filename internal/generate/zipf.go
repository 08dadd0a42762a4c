package generate

import (
	"math"

	"aibox/internal/fixmath"
)

// zipf draws ranks 1..n with probability proportional to rank^-s, in constant
// time and memory, by rejection-inversion (Hörmann and Derflinger, ACM TOMACS
// 6(3), 1996): it inverts the integral H of the density h(x) = x^-s, rounds to the next
// integer, and rejects the small part by which the integral exceeds the sum. At least
// three of four draws are accepted, for any n and s.
//
// H(x) = (x^(1-s) - 1)/(1-s) and its inverse are written with expm1 and log1p,
// which hold near s = 1, where H is the logarithm.
type zipf struct {
	s, n  float64
	uLow  float64 // H(1.5) - h(1)
	uHigh float64 // H(n+0.5)
	sure  float64 // an x that is at most this far below its rank is accepted at once
}

func newZipf(s float64, n int64) zipf {
	z := zipf{s: s, n: float64(n)}
	z.uLow = z.integral(1.5) - 1
	z.uHigh = z.integral(z.n + 0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// draw returns a rank.
func (z *zipf) draw(r *stream) int64 {
	if z.s == 0 {
		return int64(r.below(uint64(z.n))) + 1
	}
	for {
		u := z.uHigh + float64(unit(r.next())*(z.uLow-z.uHigh))
		x := z.inverse(u)
		k := math.Floor(min(max(x, 1), z.n) + 0.5)
		if k-x <= z.sure || u >= z.integral(k+0.5)-z.density(k) {
			return int64(k)
		}
	}
}

func (z *zipf) density(x float64) float64 { return fixmath.Exp(float64(-z.s * fixmath.Log(x))) }

func (z *zipf) integral(x float64) float64 {
	l := fixmath.Log(x)
	t := float64((1 - z.s) * l)
	if t > -1e-8 && t < 1e-8 {
		return float64(l * (1 + float64(t/2)))
	}
	return float64(l * (fixmath.Expm1(t) / t))
}

func (z *zipf) inverse(u float64) float64 {
	t := max(float64(u*(1-z.s)), -1) // rounding may go below the pole
	if t > -1e-8 && t < 1e-8 {
		return fixmath.Exp(float64(u * (1 - float64(t/2))))
	}
	return fixmath.Exp(float64(u * (fixmath.Log1p(t) / t)))
}
