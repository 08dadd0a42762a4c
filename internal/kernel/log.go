package kernel

import "math"

// Coefficients of log((1+s)/(1-s)) = 2·(s + s^3/3 + s^5/5 + …). With
// |s| <= (√2-1)/(√2+1) = 0.1716 the terms after s^19 are below 2^-55 of the
// first.
const (
	log3  = 1.0 / 3
	log5  = 1.0 / 5
	log7  = 1.0 / 7
	log9  = 1.0 / 9
	log11 = 1.0 / 11
	log13 = 1.0 / 13
	log15 = 1.0 / 15
	log17 = 1.0 / 17
	log19 = 1.0 / 19
)

// Log returns the natural logarithm of x. The error is below 0.501 ulp, near 1
// too; denormal arguments are exact. Log(±0) = -Inf, Log(+Inf) = +Inf,
// Log(x) = NaN for x < 0 and for NaN.
func Log(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < 0:
		return math.Float32frombits(0x7fc00000)
	case x == 0:
		return math.Float32frombits(0xff800000)
	case x > math.MaxFloat32:
		return x
	}
	// Every positive float32 is a normal float64: x = 2^e·f with f in [1, 2).
	bits := math.Float64bits(float64(x))
	e := int64(bits>>52) - 1023
	f := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if f > math.Sqrt2 {
		f *= 0.5
		e++
	}
	return float32(float64(float64(e)*math.Ln2) + log1pReduced(f-1))
}

// log1pReduced returns log(1+d) for 1+d between √½ and √2 with a relative
// error below 2^-48.
func log1pReduced(d float64) float64 {
	s := d / (2 + d)
	z := float64(s * s)
	p := float64(z*log19) + log17
	p = float64(z*p) + log15
	p = float64(z*p) + log13
	p = float64(z*p) + log11
	p = float64(z*p) + log9
	p = float64(z*p) + log7
	p = float64(z*p) + log5
	p = float64(z*p) + log3
	return 2 * (s + float64(s*float64(z*p)))
}

// log1p64 returns log(1+u) for 0 <= u <= 1 with a relative error below 2^-48.
func log1p64(u float64) float64 {
	if u <= math.Sqrt2-1 {
		return log1pReduced(u)
	}
	// log(1+u) = log 2 + log(1 + (u-1)/2), and u-1 is exact for u >= ½.
	return math.Ln2 + log1pReduced((u-1)*0.5)
}
