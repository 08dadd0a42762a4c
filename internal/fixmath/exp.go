package fixmath

import "math"

const (
	// ln 2 in two parts: ln2Hi has 21 trailing zero bits, so that k*ln2Hi is
	// exact for |k| < 2^21; ln2Lo is the rest.
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10

	expOverflow  = 709.782712893384
	expUnderflow = -745.1332191019412
)

// Exp returns e^x. It overflows to +Inf and underflows to 0; Exp(NaN) is NaN.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expOverflow:
		return math.Inf(1)
	case x < expUnderflow:
		return 0
	}
	// e^x = 2^k e^r with |r| <= ln2/2.
	k := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := x - float64(k*ln2Hi)
	r -= float64(k * ln2Lo)
	return scale(1+expTail(r), int(k))
}

// Expm1 returns e^x - 1, accurate near 0.
func Expm1(x float64) float64 {
	if x > -0.35 && x < 0.35 {
		return expTail(x)
	}
	return Exp(x) - 1
}

// expTail returns e^r - 1 for |r| <= 0.35 by its Taylor series up to r^13, the
// first neglected term being below 5e-18. The two halves of the polynomial are
// independent, which shortens the chain of dependent operations.
func expTail(r float64) float64 {
	const (
		c2  = 1.0 / 2
		c3  = 1.0 / 6
		c4  = 1.0 / 24
		c5  = 1.0 / 120
		c6  = 1.0 / 720
		c7  = 1.0 / 5040
		c8  = 1.0 / 40320
		c9  = 1.0 / 362880
		c10 = 1.0 / 3628800
		c11 = 1.0 / 39916800
		c12 = 1.0 / 479001600
		c13 = 1.0 / 6227020800
	)
	r2 := float64(r * r)
	r4 := float64(r2 * r2)
	r8 := float64(r4 * r4)
	p23 := c2 + float64(c3*r)
	p45 := c4 + float64(c5*r)
	p67 := c6 + float64(c7*r)
	p89 := c8 + float64(c9*r)
	pab := c10 + float64(c11*r)
	pcd := c12 + float64(c13*r)
	low := p23 + float64(p45*r2) + float64(p67*r4)
	high := p89 + float64(pab*r2) + float64(pcd*r4)
	// low and high start at r^2 and r^8: r^2*low covers r^2..r^7.
	return r + float64(r2*low) + float64(r8*high)
}

// scale returns y * 2^k for y near 1, also where the result is subnormal.
func scale(y float64, k int) float64 {
	if k >= -1021 && k <= 1022 {
		return y * math.Float64frombits(uint64(k+1023)<<52)
	}
	return math.Ldexp(y, k)
}
