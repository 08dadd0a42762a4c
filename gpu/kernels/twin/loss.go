package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"loss_terms": {Run: func(b *emulated.Block) {
		terms, z, y, w := at(b, 0), at(b, 2), at(b, 4), at(b, 6)
		check := emulated.Slice[float32](b, 8)[0]
		elements(b, b.Int32(9), 1, func(i, _ int) { terms.row(i)[0] = lossTerm(z.row(i)[0], y.row(i)[0], weightOf(w, i), check) })
	}},
	"loss_grad": {Run: func(b *emulated.Block) {
		dz, z, y, w, total := at(b, 0), at(b, 2), at(b, 4), at(b, 6), b.Int32(9)
		elements(b, b.Int32(8), 1, func(i, _ int) { dz.row(i)[0] = lossSlope(z.row(i)[0], y.row(i)[0], weightOf(w, i), total) })
	}},
})

func lossTerm(logit, label, weight, check float32) float32 {
	return float32((kernel.Softplus(logit)-float32(label*logit))*weight) + check
}

func lossSlope(logit, label, weight float32, total int) float32 {
	return (kernel.Sigmoid(logit) - label) * weight * (1 / float32(total))
}

// weightOf is the weight of an example.
func weightOf(w matrix, i int) float32 {
	if w.stride == 0 {
		return 1
	}
	return w.row(i)[0]
}
