package optim

import (
	"errors"
	"fmt"
	"math"
)

// StateTensor is a part of the optimizer's state. Data is the state itself:
// read it to save, write it to load.
type StateTensor struct {
	Name string // parameter "/" slot, for instance "top.0.weight/exp_avg"
	Data []float32
}

// Dense updates the parameters of the dense network.
type Dense struct {
	cfg    DenseConfig
	params []*Param
	slots  [][2][]float32 // per parameter; what they are, slotNames says
	began  [][]stretch    // per parameter; nil: the state of all values began with step 1
}

// slotNames are PyTorch's names for the state of each kind.
var slotNames = map[string][]string{
	"sgd":      nil,
	"momentum": {"momentum_buffer"},
	"adagrad":  {"sum"},
	"adam":     {"exp_avg", "exp_avg_sq"},
	"adamw":    {"exp_avg", "exp_avg_sq"},
}

// NewDense returns an optimizer for params in its initial state. It reports
// all that is wrong with cfg and params.
func NewDense(cfg DenseConfig, params []*Param) (*Dense, error) {
	errs := []error{cfg.validate()}
	seen := map[string]bool{}
	for _, p := range params {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		if len(p.Data) != n || len(p.Grad) != n {
			errs = append(errs, fmt.Errorf("optim: parameter %s of shape %v has %d values and %d gradients", p.Name, p.Shape, len(p.Data), len(p.Grad)))
		}
		if seen[p.Name] {
			errs = append(errs, fmt.Errorf("optim: two parameters are named %s", p.Name))
		}
		seen[p.Name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Dense{cfg: cfg, params: params, slots: make([][2][]float32, len(params)), began: make([][]stretch, len(params))}
	for i, p := range params {
		for s := range slotNames[cfg.Kind] {
			d.slots[i][s] = make([]float32, len(p.Data))
		}
		if cfg.Kind == "adagrad" {
			fill(d.slots[i][0], float32(cfg.InitialAccumulator))
		}
	}
	return d, nil
}

func fill(s []float32, x float32) {
	for i := range s {
		s[i] = x
	}
}

// State returns the whole state, in the order of the parameters, except the number of
// steps that they have taken, which Steps returns.
func (d *Dense) State() []StateTensor {
	var out []StateTensor
	for i, p := range d.params {
		for s, name := range slotNames[d.cfg.Kind] {
			out = append(out, StateTensor{Name: p.Name + "/" + name, Data: d.slots[i][s]})
		}
	}
	return out
}

// Step updates every parameter by its gradient. t is the number of the model's
// step, 1 for the first; lrScale multiplies the learning rate.
func (d *Dense) Step(t int64, lrScale float32) {
	c := &d.cfg
	rate := float64(c.LearningRate * float64(lrScale))
	lr, l2 := float32(rate), float32(c.L2)
	for i, p := range d.params {
		s := &d.slots[i]
		switch c.Kind {
		case "sgd":
			stepSGD(p.Data, p.Grad, lr, l2)
		case "momentum":
			stepMomentum(p.Data, p.Grad, s[0], lr, l2, float32(c.Momentum))
		case "adagrad":
			stepAdagrad(p.Data, p.Grad, s[0], lr, l2, float32(c.Epsilon))
		case "adamw":
			decay := float32(1 - float64(rate*c.WeightDecay))
			for j := range p.Data {
				p.Data[j] *= decay
			}
			fallthrough
		case "adam":
			d.adam(i, t, rate)
		}
	}
}

func stepSGD(w, g []float32, lr, l2 float32) {
	g = g[:len(w)]
	for i := range w {
		d := g[i] + float32(l2*w[i])
		w[i] -= float32(lr * d)
	}
}

func stepMomentum(w, g, b []float32, lr, l2, momentum float32) {
	g, b = g[:len(w)], b[:len(w)]
	for i := range w {
		d := g[i] + float32(l2*w[i])
		b[i] = float32(momentum*b[i]) + d
		w[i] -= float32(lr * b[i])
	}
}

func stepAdagrad(w, g, s []float32, lr, l2, eps float32) {
	g, s = g[:len(w)], s[:len(w)]
	for i := range w {
		d := g[i] + float32(l2*w[i])
		s[i] += float32(d * d)
		w[i] -= float32(lr*d) / (sqrt32(s[i]) + eps)
	}
}

// adamStep holds the numbers of one step of Adam: w -= size m / (sqrt(v)/scale + eps).
type adamStep struct {
	l2, beta2, rest1, rest2 float32 // rest is 1-beta
	size, scale, eps        float32
}

// adamStep is step t of values whose state was zero before step 1.
func (c *DenseConfig) adamStep(t int64, rate float64) adamStep {
	return adamStep{
		l2: float32(c.L2), beta2: float32(c.Beta2), rest1: float32(1 - c.Beta1), rest2: float32(1 - c.Beta2),
		size:  float32(rate / (1 - powInt(c.Beta1, t))),
		scale: float32(math.Sqrt(1 - powInt(c.Beta2, t))), eps: float32(c.Epsilon),
	}
}

func (a *adamStep) step(w, g, m, v []float32) {
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	for i := range w {
		d := g[i] + float32(a.l2*w[i])
		m[i] += float32(a.rest1 * (d - m[i]))
		v[i] = float32(a.beta2*v[i]) + float32(float32(a.rest2*d)*d)
		w[i] -= float32(a.size*m[i]) / (sqrt32(v[i])/a.scale + a.eps)
	}
}
