package fixmath

import "math"

// Log returns the natural logarithm of x: NaN for x < 0 and NaN, -Inf for 0.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	// x = 2^k m with sqrt(1/2) <= m < sqrt(2).
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		k--
	}
	f := m - 1
	l := logSeries(f / (2 + f))
	n := float64(k)
	return float64(n*ln2Hi) + (l + float64(n*ln2Lo))
}

// Log1p returns log(1+x), accurate near 0: NaN for x < -1, -Inf for -1.
func Log1p(x float64) float64 {
	if x > -0.29 && x < 0.41 {
		return logSeries(x / (2 + x))
	}
	u := 1 + x
	if !(u > 0) || u > math.MaxFloat64 {
		return Log(u)
	}
	// 1+x was rounded; the first-order term makes up for it.
	return Log(u) + (x-(u-1))/u
}

// logSeries returns log((1+s)/(1-s)) = 2 (s + s^3/3 + s^5/5 + ...) for
// |s| <= 0.172, the first neglected term being below 1e-18 of the first.
func logSeries(s float64) float64 {
	const (
		c1  = 2.0 / 3
		c2  = 2.0 / 5
		c3  = 2.0 / 7
		c4  = 2.0 / 9
		c5  = 2.0 / 11
		c6  = 2.0 / 13
		c7  = 2.0 / 15
		c8  = 2.0 / 17
		c9  = 2.0 / 19
		c10 = 2.0 / 21
	)
	z := float64(s * s)
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	p12 := c1 + float64(c2*z)
	p34 := c3 + float64(c4*z)
	p56 := c5 + float64(c6*z)
	p78 := c7 + float64(c8*z)
	p9a := c9 + float64(c10*z)
	low := p12 + float64(p34*z2)
	high := p56 + float64(p78*z2) + float64(p9a*z4)
	tail := low + float64(high*z4)
	return 2*s + float64(float64(s*z)*tail)
}
