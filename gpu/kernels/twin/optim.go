package twin

import (
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"optimize_sgd":      optimize(kernel.FormulaSGD, "rruri"),
	"optimize_momentum": optimize(kernel.FormulaMomentum, "rruru i"),
	"optimize_adagrad":  optimize(kernel.FormulaAdagrad, "rruru i"),
	"optimize_adam":     optimize(kernel.FormulaAdam, "rruruu i"),
	"optimize_ftrl":     optimize(kernel.FormulaFTRL, "rruruu i"),
})

func optimize(f kernel.Formula, letters string) emulated.Kernel {
	return emulated.Kernel{Params: params(letters), Run: func(b *emulated.Block) {
		if emulated.Slice[int32](b, 0)[0] != 0 {
			return
		}
		u := kernels.ReadUpdate(f, emulated.Slice[float32](b, 1))
		n := b.Int32(4 + f.Slots())
		lo, hi := b.Linear()
		lo, hi = min(lo, n), min(hi, n)
		part := func(i int) []float32 { return emulated.Slice[float32](b, i)[lo:hi] }
		var state [2][]float32
		for i := range f.Slots() {
			state[i] = part(4 + i)
		}
		u.Step(part(2), part(3), state[0], state[1])
	}}
}
