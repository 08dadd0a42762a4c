package kernel

import "math"

// Coefficients of exp(r) = sum r^i/i! for |r| <= ln(2)/2. Cut off after r^11
// the relative error is below 0.3466^12/12! = 2^-47.
const (
	exp2  = 1.0 / 2
	exp3  = 1.0 / 6
	exp4  = 1.0 / 24
	exp5  = 1.0 / 120
	exp6  = 1.0 / 720
	exp7  = 1.0 / 5040
	exp8  = 1.0 / 40320
	exp9  = 1.0 / 362880
	exp10 = 1.0 / 3628800
	exp11 = 1.0 / 39916800
)

// roundToInt, added to and subtracted from a float64 below 2^51, leaves the
// nearest integer.
const roundToInt = 3 << 51

// expLimit bounds the argument: exp(±128) is beyond float32 on both sides.
const expLimit = 128

// Exp returns e^x. The error is below 0.501 ulp; results below the normal
// range are denormal numbers. Exp(+Inf) = +Inf, Exp(-Inf) = 0, Exp(NaN) = NaN.
func Exp(x float32) float32 {
	if x != x {
		return x
	}
	return float32(exp64(min(max(float64(x), -expLimit), expLimit)))
}

// exp64 returns e^x for |x| <= expLimit with a relative error below 2^-44.
func exp64(x float64) float64 {
	scale, q := expm1Reduced(x)
	return scale + float64(scale*q)
}

// expm1_64 returns e^x - 1 for 0 <= x <= expLimit with a relative error below
// 2^-44, near zero too.
func expm1_64(x float64) float64 {
	scale, q := expm1Reduced(x)
	return (scale - 1) + float64(scale*q)
}

// expm1Reduced returns scale = 2^n and q = e^r - 1 with x = n·ln 2 + r and
// |r| <= ln(2)/2. For x that near zero n is 0 and r is x itself.
func expm1Reduced(x float64) (scale, q float64) {
	n := (float64(x*math.Log2E) + roundToInt) - roundToInt
	r := x - float64(n*math.Ln2)
	p := float64(r*exp11) + exp10
	p = float64(r*p) + exp9
	p = float64(r*p) + exp8
	p = float64(r*p) + exp7
	p = float64(r*p) + exp6
	p = float64(r*p) + exp5
	p = float64(r*p) + exp4
	p = float64(r*p) + exp3
	p = float64(r*p) + exp2
	q = r + float64(float64(r*r)*p)
	return math.Float64frombits(uint64(int64(n)+1023) << 52), q
}
