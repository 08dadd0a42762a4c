package kernels

import (
	"aibox/gpu"
	"aibox/internal/kernel"
)

// kernelOptimize are the kernels of dense parameters, by formula. The row-wise formula is that of
// tables only.
var kernelOptimize = map[kernel.Formula]number{
	kernel.FormulaSGD:      declare("optimize_sgd", "rurur ui i"),
	kernel.FormulaMomentum: declare("optimize_momentum", "rururu ui i"),
	kernel.FormulaAdagrad:  declare("optimize_adagrad", "rururu ui i"),
	kernel.FormulaAdam:     declare("optimize_adam", "rururuu ui i"),
	kernel.FormulaFTRL:     declare("optimize_ftrl", "rururuu ui i"),
}

// UpdateBytes is what the constants of a kernel.Update take in device memory.
const UpdateBytes = 4 * 12

// AppendUpdate appends the constants of u, UpdateBytes/4 words, as kernels read them.
func AppendUpdate(words []float32, u *kernel.Update) []float32 {
	return append(words, u.Shrink, u.L2, u.Rate, u.Epsilon, u.Momentum, u.Beta2, u.Rest1, u.Rest2, u.Scale, u.Beta, u.Lambda1, u.Lambda2)
}

// ReadUpdate returns the update of a formula whose constants are words, as AppendUpdate appends them.
func ReadUpdate(f kernel.Formula, words []float32) kernel.Update {
	return kernel.Update{
		Formula: f, Shrink: words[0], L2: words[1], Rate: words[2], Epsilon: words[3], Momentum: words[4],
		Beta2: words[5], Rest1: words[6], Rest2: words[7], Scale: words[8], Beta: words[9], Lambda1: words[10], Lambda2: words[11],
	}
}

// Optimize updates the values of w, a single row, in place, given their gradients g and their
// state: f.Slots matrices of one row of that length. constants are the update's constants,
// UpdateBytes of device memory (AppendUpdate), because they change from step to step. If the flag
// is set, nothing is done. If a value becomes NaN, so does check, a number in device memory;
// otherwise check does not change. rounded, which is optional, gets the new values, rounded as
// ToBF16 does.
//
// An average is updated in the same way, by the parameters in place of gradients (optim.Dense.Averager).
func (k *Set) Optimize(s gpu.Stream, flag, check, constants gpu.Region, f kernel.Formula, w, g Matrix, rounded Half, state ...Matrix) error {
	n, ok := kernelOptimize[f]
	if !ok || len(state) != f.Slots() {
		return gpu.Invalid("an update of formula %d with %d slots of state", f, len(state))
	}
	if w.Columns == 0 {
		return nil
	}
	k.with().add(gpu.Read(flag), gpu.Update(check), gpu.Read(constants), gpu.Update(w.Region(1)), gpu.Read(g.Region(1)))
	for _, m := range state {
		k.add(gpu.Update(m.Region(1)))
	}
	half, rounds := none(g.Region(1)), 0
	if rounded.Memory != nil {
		half, rounds = rounded.Region(1), 1
	}
	k.add(gpu.Update(half)).ints(rounds, w.Columns)
	return k.launch(s, n, elements(1, w.Columns))
}
