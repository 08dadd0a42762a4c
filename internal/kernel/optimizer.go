package kernel

import "math"

// The steps of optimizers, elementwise. Each operation is rounded to float32. g is the
// gradient, to which L2 times the value is added first: d is that sum.

// SGD is a step of stochastic gradient descent: w -= Rate·d.
type SGD struct{ L2, Rate float32 }

// Step updates the values w.
func (c *SGD) Step(w, g []float32) {
	sameLength("SGD.Step", len(w), len(g))
	k := c.vector(w, g)
	w, g = w[k:], g[k:]
	for i := range w {
		d := g[i] + float32(c.L2*w[i])
		w[i] -= float32(c.Rate * d)
	}
}

// Momentum is a step of gradient descent with momentum: b = Momentum·b + d, w -= Rate·b.
type Momentum struct{ L2, Rate, Momentum float32 }

// Step updates the values w and their momentum b.
func (c *Momentum) Step(w, g, b []float32) {
	sameLength("Momentum.Step", len(w), len(g))
	sameLength("Momentum.Step", len(w), len(b))
	k := c.vector(w, g, b)
	w, g, b = w[k:], g[k:], b[k:]
	for i := range w {
		d := g[i] + float32(c.L2*w[i])
		b[i] = float32(c.Momentum*b[i]) + d
		w[i] -= float32(c.Rate * b[i])
	}
}

// Adagrad is a step of Adagrad: s += d², w -= Rate·d / (√s + Epsilon).
type Adagrad struct{ L2, Rate, Epsilon float32 }

// Step updates the values w and their sums of squares s.
func (c *Adagrad) Step(w, g, s []float32) {
	sameLength("Adagrad.Step", len(w), len(g))
	sameLength("Adagrad.Step", len(w), len(s))
	k := c.vector(w, g, s)
	w, g, s = w[k:], g[k:], s[k:]
	for i := range w {
		d := g[i] + float32(c.L2*w[i])
		s[i] += float32(d * d)
		w[i] -= float32(c.Rate*d) / (Sqrt(s[i]) + c.Epsilon)
	}
}

// Adam is a step of Adam: m += Rest1·(d - m), v = Beta2·v + Rest2·d·d,
// w -= Size·m / (√v/Scale + Epsilon).
type Adam struct {
	L2, Rest1, Beta2, Rest2 float32 // Rest1 and Rest2 are 1 minus the betas
	Size, Scale, Epsilon    float32 // Size and Scale correct the bias of m and v
}

// Step updates the values w and their moments m and v.
func (c *Adam) Step(w, g, m, v []float32) {
	sameLength("Adam.Step", len(w), len(g))
	sameLength("Adam.Step", len(w), len(m))
	sameLength("Adam.Step", len(w), len(v))
	k := c.vector(w, g, m, v)
	w, g, m, v = w[k:], g[k:], m[k:], v[k:]
	for i := range w {
		d := g[i] + float32(c.L2*w[i])
		m[i] += float32(c.Rest1 * (d - m[i]))
		v[i] = float32(c.Beta2*v[i]) + float32(float32(c.Rest2*d)*d)
		w[i] -= float32(c.Size*m[i]) / (Sqrt(v[i])/c.Scale + c.Epsilon)
	}
}

// Sqrt is the correctly rounded square root.
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }
