package kernel

import "math"

// Sigmoid returns 1/(1+e^-x). The error is below 0.501 ulp, for large negative
// x too. Sigmoid(-Inf) = 0, Sigmoid(+Inf) = 1, Sigmoid(NaN) = NaN.
func Sigmoid(x float32) float32 {
	if x != x {
		return x
	}
	return float32(1 / (1 + exp64(min(max(-float64(x), -expLimit), expLimit))))
}

// Tanh returns the hyperbolic tangent of x. The error is below 0.501 ulp, near
// zero too. Tanh(±0) = ±0, Tanh(±Inf) = ±1, Tanh(NaN) = NaN.
func Tanh(x float32) float32 {
	if x != x {
		return x
	}
	// tanh |x| = (e^2|x| - 1)/(e^2|x| + 1); it rounds to 1 from 9.02 on.
	t := expm1_64(min(2*math.Abs(float64(x)), expLimit))
	return float32(math.Copysign(t/(t+2), float64(x)))
}

// Softplus returns log(1+e^x), the loss of a logit x. The error is below 0.501
// ulp, also where x is large and negative. Softplus(-Inf) = 0,
// Softplus(+Inf) = +Inf, Softplus(NaN) = NaN.
func Softplus(x float32) float32 {
	if x != x {
		return x
	}
	u := exp64(-min(math.Abs(float64(x)), expLimit))
	return float32(max(float64(x), 0) + log1p64(u))
}

// SigmoidSlice sets dst[i] = Sigmoid(src[i]). dst may be src.
func SigmoidSlice(dst, src []float32) {
	sameLength("SigmoidSlice", len(dst), len(src))
	sigmoidVector(dst, src)
}

// TanhSlice sets dst[i] = Tanh(src[i]). dst may be src.
func TanhSlice(dst, src []float32) {
	sameLength("TanhSlice", len(dst), len(src))
	tanhVector(dst, src)
}

// SoftplusSlice sets dst[i] = Softplus(src[i]). dst may be src.
func SoftplusSlice(dst, src []float32) {
	sameLength("SoftplusSlice", len(dst), len(src))
	softplusVector(dst, src)
}
