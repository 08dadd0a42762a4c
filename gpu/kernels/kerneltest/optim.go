package kerneltest

import (
	"slices"

	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// update draws the constants of an update.
func (r *rig) update(f kernel.Formula) kernel.Update {
	u := kernel.Update{
		Formula: f, Shrink: 1, L2: 0.1 * r.Float32(), Rate: r.Float32(), Epsilon: 1e-3, Momentum: 0.9,
		Beta2: 0.99, Rest1: 0.1, Rest2: 0.01, Scale: r.Float32(), Beta: r.Float32(), Lambda1: 0.1 * r.Float32(), Lambda2: r.Float32(),
	}
	switch r.IntN(6) {
	case 0, 1:
		u.L2, u.Rate = 0, 0
	case 2:
		u.Rate *= 1e-39 // with which an FTRL step of the usual formula gives NaN
	}
	if r.IntN(2) == 0 {
		u.Shrink = 0.9 + 0.1*r.Float32()
	}
	return u
}

// floats makes an array of one row of values.
func (r *rig) floats(values []float32) *array {
	r.Helper()
	i := -1
	return r.vector(len(values), func() float32 {
		i++
		return values[i]
	})
}

var _ = add("optimize", func(r *rig) {
	for _, f := range []kernel.Formula{kernel.FormulaSGD, kernel.FormulaMomentum, kernel.FormulaAdagrad, kernel.FormulaAdam, kernel.FormulaFTRL} {
		n, value := 2*r.IntN(350), r.any()
		u := r.update(f)
		constants, flag := r.floats(kernels.AppendUpdate(nil, &u)), r.IntN(4)/3
		w, g := r.vector(n, value), r.vector(n, value)
		var state []*array
		var slots []kernels.Matrix
		var want [2][]float32
		for i := range f.Slots() {
			a := r.vector(n, func() float32 { return max(value(), 0) })
			state, slots, want[i] = append(state, a), append(slots, a.Matrix), slices.Clone(a.row(0))
		}
		values := slices.Clone(w.row(0))
		if flag == 0 {
			u.Step(values, g.row(0), want[0], want[1])
		}
		check := r.words(0)
		half, rounded := r.half(1, n, r.plain), kernels.Half{}
		if r.IntN(2) == 0 {
			rounded = half.Half
		}
		r.must(r.k.Optimize(r.s, r.words(uint32(flag)).region(), check.region(), constants.region(), f, w.Matrix, g.Matrix, rounded, slots...))
		r.equal("check", check, func(int, int) (sum float32) {
			for _, v := range values {
				if v != v && flag == 0 {
					sum = v
				}
			}
			return sum
		})
		r.equal("Optimize", w, func(_, j int) float32 { return values[j] })
		r.rounded("Optimize, rounded", half, func(_, j int) float32 {
			if rounded.Memory == nil || flag != 0 {
				return half.value(0, j)
			}
			return values[j]
		})
		for i, a := range state {
			r.equal("state", a, func(_, j int) float32 { return want[i][j] })
		}
	}
})
