package fixmath

import "math"

// Sigmoid returns 1/(1+e^-x) without overflow.
func Sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + Exp(-x))
	}
	e := Exp(x)
	return e / (1 + e)
}

// Softplus returns log(1+e^x) without overflow. -log Sigmoid(x) is
// Softplus(-x), so the log loss of logit z is Softplus(-z) for a positive and
// Softplus(z) for a negative.
func Softplus(x float64) float64 {
	return max(x, 0) + Log1p(Exp(-math.Abs(x)))
}

// Entropy returns the entropy in nats of a binary outcome with probability p,
// 0 for p = 0 and p = 1.
func Entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -float64(p*Log(p)) - float64((1-p)*Log1p(-p))
}
