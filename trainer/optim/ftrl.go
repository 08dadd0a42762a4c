package optim

import "aibox/internal/kernel"

// FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, Algorithm 1), per value:
//
//	sigma = (sqrt(n + g^2) - sqrt(n)) / alpha
//	z += g - sigma w
//	n += g^2
//	w = 0                                                      if |z| <= lambda1
//	    -(z - sign(z) lambda1) / ((beta + sqrt(n))/alpha + lambda2)    otherwise
//
// The paper's alpha never changes. Here a schedule may change it, and z, which is in
// units of w/alpha, would then no longer match w. So each update first recomputes z from
// w, which determines it unless w is 0; with a constant alpha this gives the same number.
// It also allows a new row to begin at any w.

// denom is the denominator of w, by which z is divided.
func (s *rowStep) denom(n float32) float32 {
	return (s.beta+kernel.Sqrt(n))/s.alpha + s.lambda2
}

// dual is the z that belongs to w; for w = 0 it is the middle of the range of z that
// gives 0.
func (s *rowStep) dual(w, n float32) float32 {
	z := -float32(w * s.denom(n))
	switch {
	case w > 0:
		return z - s.lambda1
	case w < 0:
		return z + s.lambda1
	}
	return 0
}

func (s *rowStep) ftrl(w, z, n, g []float32) {
	if s.alpha == 0 {
		return // a learning rate of 0 changes nothing
	}
	z, n, g = z[:len(w)], n[:len(w)], g[:len(w)]
	for i := range w {
		d := g[i] + float32(s.l2*w[i])
		if w[i] != 0 {
			z[i] = s.dual(w[i], n[i])
		}
		next := n[i] + float32(d*d)
		sigma := (kernel.Sqrt(next) - kernel.Sqrt(n[i])) / s.alpha
		z[i] += d - float32(sigma*w[i])
		n[i] = next
		switch {
		case z[i] > s.lambda1:
			w[i] = -(z[i] - s.lambda1) / s.denom(next)
		case z[i] < -s.lambda1:
			w[i] = -(z[i] + s.lambda1) / s.denom(next)
		default:
			w[i] = 0
		}
	}
}
