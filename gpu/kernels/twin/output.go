package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"output_layer": {Run: func(b *emulated.Block) {
		dx := at(b, 6)
		output(b, func(i, j int, g float32) { dx.row(i)[j] = g })
	}},
	"output_layer_bf16": {Run: func(b *emulated.Block) { output(b, halfs(b, 6).set) }},
	"output_sums": {Run: func(b *emulated.Block) {
		dots, sums := emulated.Slice[uint64](b, 0), emulated.Slice[uint64](b, 1)
		g, w, x, columns, a := at(b, 2), at(b, 4), at(b, 6), b.Int32(9), kernels.Activation(b.Int32(10))
		lo, hi := chunk(b, b.Int32(8))
		blockColumns(b, columns, func(j int) {
			at := b.Index.Y*columns + j
			dots[at] = math.Float64bits(columnSum(lo, hi, func(i int) float64 { return float64(x.row(i)[j]) * float64(g.row(i)[0]) }))
			sums[at] = math.Float64bits(columnSum(lo, hi, func(i int) float64 {
				return float64(derived(a, x.row(i)[j], g.row(i)[0]*w.row(j)[0]))
			}))
		})
	}},
})

// output calls put with the gradients of what enters the layer.
func output(b *emulated.Block, put func(i, j int, g float32)) {
	z, terms, dz := at(b, 0), at(b, 2), at(b, 4)
	x, w, bias, labels, weights := at(b, 8), at(b, 10), at(b, 12), at(b, 14), at(b, 16)
	check, columns, total, a := emulated.Slice[float32](b, 18)[0], b.Int32(20), b.Int32(21), kernels.Activation(b.Int32(22))
	lo, hi := b.Linear()
	for i := lo / 4; i < min(hi/4, b.Int32(19)); i++ {
		logit := laneSum(columns, func(sum float32, j int) float32 { return kernel.FMA(x.row(i)[j], w.row(j)[0], sum) })
		if bias.stride > 0 {
			logit += bias.data[0]
		}
		label, weight := labels.row(i)[0], weightOf(weights, i)
		slope := lossSlope(logit, label, weight, total)
		z.row(i)[0], terms.row(i)[0], dz.row(i)[0] = logit, lossTerm(logit, label, weight, check), slope
		for j := range columns {
			put(i, j, derived(a, x.row(i)[j], slope*w.row(j)[0]))
		}
	}
}
