package twin

import (
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
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
			for j := kernel.Pairs(b.Int32(5)); j < b.Int32(9); j++ {
				out.set(i, j, 0)
			}
		})
	}},
	"interact_grad": {Run: func(b *emulated.Block) {
		dx, dim := at(b, 0), b.Int32(8)
		mixes(b, 2, 6, func(i, v, d int, sum float32) { dx.row(i)[v*dim+d] = sum })
	}},
	"interact_grad_first": {Run: func(b *emulated.Block) {
		dx, dz, half, x, others := at(b, 0), at(b, 2), halfs(b, 4), at(b, 6), at(b, 10)
		dim, a := b.Int32(14), kernels.Activation(b.Int32(18))
		mixes(b, 6, 12, func(i, v, d int, sum float32) {
			if v > 0 {
				dx.row(i)[(v-1)*dim+d] = sum
				return
			}
			g := derived(a, x.row(i)[d], others.row(i)[d]+sum)
			dz.row(i)[d] = g
			if half.stride > 0 {
				half.set(i, d, g)
			}
		})
		examples(b, b.Int32(12), func(i int) {
			for d := dim; d < b.Int32(17); d++ {
				half.set(i, d, 0)
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

// mixes calls put with the gradient of each element of the vectors of each example. Vectors and
// gradients of pairs are arguments from x on, the numbers of examples, of vectors and of their
// elements those from size on.
func mixes(b *emulated.Block, x, size int, put func(i, v, d int, sum float32)) {
	vectors, dim := b.Int32(size+1), b.Int32(size+2)
	examples(b, b.Int32(size), func(i int) {
		row, grad := at(b, x).row(i), at(b, x+2).row(i)
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
				put(i, v, d, sum)
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
