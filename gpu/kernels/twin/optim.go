package twin

import (
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"optimize_sgd":      optimize(kernel.FormulaSGD),
	"optimize_momentum": optimize(kernel.FormulaMomentum),
	"optimize_adagrad":  optimize(kernel.FormulaAdagrad),
	"optimize_adam":     optimize(kernel.FormulaAdam),
	"optimize_ftrl":     optimize(kernel.FormulaFTRL),
})

func optimize(f kernel.Formula) emulated.Kernel {
	return emulated.Kernel{Run: func(b *emulated.Block) {
		if emulated.Slice[int32](b, 0)[0] != 0 {
			return
		}
		u := kernels.ReadUpdate(f, emulated.Slice[float32](b, 2))
		half, rounds, n := 5+f.Slots(), b.Int32(6+f.Slots()), b.Int32(7+f.Slots())
		lo, hi := b.Linear()
		lo, hi = min(lo, n), min(hi, n)
		part := func(i int) []float32 { return emulated.Slice[float32](b, i)[lo:hi] }
		var state [2][]float32
		for i := range f.Slots() {
			state[i] = part(5 + i)
		}
		w := part(3)
		u.Step(w, part(4), state[0], state[1])
		for i, x := range w {
			if rounds > 0 {
				halfMatrix{data: emulated.Slice[uint16](b, half)}.set(0, lo+i, x)
			}
			if x != x {
				emulated.Slice[float32](b, 1)[0] = x
			}
		}
	}}
}
