package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

// Shared memory only holds copies, so the twins do without.
var _ = add(emulated.Kernels{
	"interact": {Run: func(b *emulated.Block) {
		vectors, dim := b.Int32(5), b.Int32(6)
		examples(b, b.Int32(4), func(i int) {
			out, row := at(b, 0).row(i), at(b, 2).row(i)
			for v := range vectors {
				for w := range v {
					var sum float32
					for d, x := range row[v*dim:][:dim] {
						sum = kernel.FMA(x, row[w*dim+d], sum)
					}
					out[kernel.Pairs(v)+w] = sum
				}
			}
		})
	}},
	"interact_grad": {Run: func(b *emulated.Block) {
		vectors, dim := b.Int32(7), b.Int32(8)
		examples(b, b.Int32(6), func(i int) {
			out, row, grad := at(b, 0).row(i), at(b, 2).row(i), at(b, 4).row(i)
			for v := range vectors {
				for d := range dim {
					var sum float32
					for w := range vectors {
						var g float32
						if w != v {
							g = grad[kernel.Pairs(max(v, w))+min(v, w)]
						}
						sum = kernel.FMA(g, row[w*dim+d], sum)
					}
					out[v*dim+d] = sum
				}
			}
		})
	}},
})

// examples calls f for each of n examples that a block works on.
func examples(b *emulated.Block, n int, f func(i int)) {
	for y := range b.Geometry.Block.Y {
		if i := b.Index.X*b.Geometry.Block.Y + y; i < n {
			f(i)
		}
	}
}
