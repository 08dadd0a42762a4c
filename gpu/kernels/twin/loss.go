package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"loss_terms": {Run: func(b *emulated.Block) {
		terms, z, y, w := at(b, 0), at(b, 2), at(b, 4), at(b, 6)
		check := emulated.Slice[float32](b, 8)[0]
		elements(b, b.Int32(9), 1, func(i, _ int) {
			logit := z.row(i)[0]
			term := kernel.Softplus(logit) - float32(y.row(i)[0]*logit)
			if w.stride > 0 {
				term *= w.row(i)[0]
			}
			terms.row(i)[0] = term + check
		})
	}},
	"loss_grad": {Run: func(b *emulated.Block) {
		dz, z, y, w, total := at(b, 0), at(b, 2), at(b, 4), at(b, 6), b.Int32(9)
		elements(b, b.Int32(8), 1, func(i, _ int) {
			d := kernel.Sigmoid(z.row(i)[0]) - y.row(i)[0]
			if w.stride > 0 {
				d *= w.row(i)[0]
			}
			dz.row(i)[0] = d * (1 / float32(total))
		})
	}},
})
