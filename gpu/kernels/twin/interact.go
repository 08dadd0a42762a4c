package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

// Shared memory only holds copies, so the twins do without.
var _ = add(emulated.Kernels{
	"interact": {Run: func(b *emulated.Block) {
		out := at(b, 0)
		pairs(b, func(i, pair int, product float32) { out.row(i)[pair] = product })
	}},
	"interact_bf16": {Run: func(b *emulated.Block) {
		out := halfs(b, 0)
		pairs(b, out.set)
		examples(b, b.Int32(4), func(i int) {
			for j := kernel.Pairs(b.Int32(5)); j < b.Int32(8); j++ {
				out.set(i, j, 0)
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

// pairs calls put with the dot product of each pair of the vectors of each example.
func pairs(b *emulated.Block, put func(i, pair int, product float32)) {
	vectors, dim := b.Int32(5), b.Int32(6)
	examples(b, b.Int32(4), func(i int) {
		row := at(b, 2).row(i)
		for v := range vectors {
			for w := range v {
				var sum float32
				for d, x := range row[v*dim:][:dim] {
					sum = kernel.FMA(x, row[w*dim+d], sum)
				}
				put(i, kernel.Pairs(v)+w, sum)
			}
		}
	})
}

// examples calls f for each of n examples that a block works on.
func examples(b *emulated.Block, n int, f func(i int)) {
	for y := range b.Geometry.Block.Y {
		if i := b.Index.X*b.Geometry.Block.Y + y; i < n {
			f(i)
		}
	}
}
