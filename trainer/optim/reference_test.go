package optim

import "math"

// The references below are written from the papers' and PyTorch's formulas, in
// float64, one value at a time, and share nothing with the code under test.

type refState struct{ a, b float64 }

// refDense is one step on one value.
func refDense(c DenseConfig, t int, scale, w, g float64, s *refState) float64 {
	lr := c.LearningRate * scale
	if c.Kind == "adamw" {
		w -= lr * c.WeightDecay * w
	}
	g += c.L2 * w
	switch c.Kind {
	case "sgd":
		return w - lr*g
	case "momentum":
		if t == 1 {
			s.a = g
		} else {
			s.a = c.Momentum*s.a + g
		}
		return w - lr*s.a
	case "adagrad":
		if t == 1 {
			s.a = c.InitialAccumulator
		}
		s.a += g * g
		return w - lr*g/(math.Sqrt(s.a)+c.Epsilon)
	case "adam", "adamw":
		s.a = c.Beta1*s.a + (1-c.Beta1)*g
		s.b = c.Beta2*s.b + (1-c.Beta2)*g*g
		mhat := s.a / (1 - math.Pow(c.Beta1, float64(t)))
		vhat := s.b / (1 - math.Pow(c.Beta2, float64(t)))
		return w - lr*mhat/(math.Sqrt(vhat)+c.Epsilon)
	}
	panic(c.Kind)
}

// refSparseAdam is torch.optim.SparseAdam on one value of a touched row.
func refSparseAdam(c RowConfig, t int, scale, w, g float64, s *refState) float64 {
	g += c.L2 * w
	s.a += (g - s.a) * (1 - c.Beta1)
	s.b += (g*g - s.b) * (1 - c.Beta2)
	step := c.LearningRate * scale * math.Sqrt(1-math.Pow(c.Beta2, float64(t))) / (1 - math.Pow(c.Beta1, float64(t)))
	return w - step*s.a/(math.Sqrt(s.b)+c.Epsilon)
}

// refFTRL is Algorithm 1 of McMahan et al., 2013: it keeps z and n and derives
// the weight from them.
type refFTRL struct{ z, n float64 }

func (r *refFTRL) weight(c RowConfig) float64 {
	if math.Abs(r.z) <= c.FTRLL1 {
		return 0
	}
	sign := math.Copysign(1, r.z)
	return -(r.z - sign*c.FTRLL1) / ((c.FTRLBeta+math.Sqrt(r.n))/c.LearningRate + c.FTRLL2)
}

func (r *refFTRL) update(c RowConfig, g float64) {
	w := r.weight(c)
	sigma := (math.Sqrt(r.n+g*g) - math.Sqrt(r.n)) / c.LearningRate
	r.z += g - sigma*w
	r.n += g * g
}
