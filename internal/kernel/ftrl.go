package kernel

// FTRL is a step of FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, Algorithm 1), per value:
//
//	sigma = (sqrt(n + d^2) - sqrt(n)) / alpha
//	z += d - sigma w
//	n += d^2
//	w = 0                                                      if |z| <= lambda1
//	    -(z - sign(z) lambda1) / ((beta + sqrt(n))/alpha + lambda2)    otherwise
//
// The paper's alpha never changes. Here a schedule may change it, and z, which is in
// units of w/alpha, would then no longer match w. So each update first recomputes z from
// w, which determines it unless w is 0; with a constant alpha this gives the same number.
// It also allows a new value to begin at any w.
type FTRL struct{ L2, Alpha, Beta, Lambda1, Lambda2 float32 }

// denom is the denominator of w, by which z is divided.
func (c *FTRL) denom(n float32) float32 {
	return (c.Beta+Sqrt(n))/c.Alpha + c.Lambda2
}

// Dual is the z that belongs to w; for w = 0 it is the middle of the range of z that
// gives 0.
func (c *FTRL) Dual(w, n float32) float32 {
	z := -float32(w * c.denom(n))
	switch {
	case w > 0:
		return z - c.Lambda1
	case w < 0:
		return z + c.Lambda1
	}
	return 0
}

// minAlpha is the learning rate below which a step changes nothing: 2^-64. It would change a value by
// less than about that much, which is nothing beside ordinary values, but with a still smaller rate
// the denominator overflows, since a root of n is at most 2^64. Exponential decay has such rates
// before it reaches 0.
const minAlpha = 0x1p-64

// Step updates the values w and their state z and n.
func (c *FTRL) Step(w, g, z, n []float32) {
	sameLength("FTRL.Step", len(w), len(g))
	sameLength("FTRL.Step", len(w), len(z))
	sameLength("FTRL.Step", len(w), len(n))
	if c.Alpha < minAlpha {
		return
	}
	for i := range w {
		d := g[i] + float32(c.L2*w[i])
		if w[i] != 0 {
			z[i] = c.Dual(w[i], n[i])
		}
		next := n[i] + float32(d*d)
		sigma := (Sqrt(next) - Sqrt(n[i])) / c.Alpha
		z[i] += d - float32(sigma*w[i])
		n[i] = next
		switch {
		case z[i] > c.Lambda1:
			w[i] = -(z[i] - c.Lambda1) / c.denom(next)
		case z[i] < -c.Lambda1:
			w[i] = -(z[i] + c.Lambda1) / c.denom(next)
		default:
			w[i] = 0
		}
	}
}
