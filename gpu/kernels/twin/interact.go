package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

// Shared memory only holds copies, so the twins do without.
var _ = add(emulated.Kernels{
	"interact": {Run: func(b *emulated.Block) {
		out, row := at(b, 0).row(b.Index.X), at(b, 2).row(b.Index.X)
		vectors, dim := b.Int32(4), b.Int32(5)
		for v := range vectors {
			for w := range v {
				var sum float32
				for d, x := range row[v*dim:][:dim] {
					sum = kernel.FMA(x, row[w*dim+d], sum)
				}
				out[kernel.Pairs(v)+w] = sum
			}
		}
	}},
	"interact_grad": {Run: func(b *emulated.Block) {
		out, row, grad := at(b, 0).row(b.Index.X), at(b, 2).row(b.Index.X), at(b, 4).row(b.Index.X)
		vectors, dim := b.Int32(6), b.Int32(7)
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
	}},
})
