package kerneltest

import (
	"math"

	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// step64 is a step of an optimizer in float64: what a value becomes that has this gradient and state.
func step64(u *kernel.Update, w, g float64, state [2]float64) (float64, [2]float64) {
	of := func(x float32) float64 { return float64(x) }
	w *= of(u.Shrink)
	d := g + of(u.L2)*w
	switch u.Formula {
	case kernel.FormulaSGD:
		w -= of(u.Rate) * d
	case kernel.FormulaMomentum:
		state[0] = of(u.Momentum)*state[0] + d
		w -= of(u.Rate) * state[0]
	case kernel.FormulaAdagrad:
		state[0] += d * d
		w -= of(u.Rate) * d / (math.Sqrt(state[0]) + of(u.Epsilon))
	case kernel.FormulaAdam:
		state[0] += of(u.Rest1) * (d - state[0])
		state[1] = of(u.Beta2)*state[1] + of(u.Rest2)*d*d
		w -= of(u.Rate) * state[0] / (math.Sqrt(state[1])/of(u.Scale) + of(u.Epsilon))
	}
	return w, state
}

// FTRL, whose formula recomputes z of the value, is held to that of package kernel by "optimize" alone.
var _ = add("optimize in float64", func(r *rig) {
	for _, f := range []kernel.Formula{kernel.FormulaSGD, kernel.FormulaMomentum, kernel.FormulaAdagrad, kernel.FormulaAdam} {
		n, u := 1+r.IntN(700), r.update(f)
		u.Rate, u.Scale = 0.1*u.Rate, 0.5+u.Scale/2
		constants := r.floats(kernels.AppendUpdate(nil, &u))
		w, g := r.vector(n, r.plain), r.vector(n, r.plain)
		var state []*array
		var slots []kernels.Matrix
		for range f.Slots() {
			// Sums of squares are not tiny in comparison to a gradient, as behind real steps.
			a := r.vector(n, func() float32 { return 0.1 + r.Float32() })
			state, slots = append(state, a), append(slots, a.Matrix)
		}
		r.must(r.k.Optimize(r.s, r.words(0).region(), r.words(0).region(), constants.region(), f, w.Matrix, g.Matrix, kernels.Half{}, slots...))
		after := func(j int) (float64, [2]float64) {
			var before [2]float64
			for i, a := range state {
				before[i] = a.exact(0, j)
			}
			return step64(&u, w.exact(0, j), g.exact(0, j), before)
		}
		r.near("Optimize", w, func(_, j int) (float64, float64) {
			want, _ := after(j)
			return want, 1 + math.Abs(w.exact(0, j)-want) + math.Abs(w.exact(0, j))
		})
		for i, a := range state {
			r.near("state", a, func(_, j int) (float64, float64) {
				_, want := after(j)
				return want[i], 1 + math.Abs(want[i])
			})
		}
	}
})
