package twin

import (
	"aibox/gpu/emulated"

	"aibox/internal/splitmix"
)

var _ = add(emulated.Kernels{
	"add": {Run: func(b *emulated.Block) {
		y, x := at(b, 0), at(b, 2)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] += x.row(i)[j]
		})
	}},
	"sum": {Run: func(b *emulated.Block) {
		y, x0, x1 := at(b, 0), at(b, 2), at(b, 4)
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			y.row(i)[j] = x0.row(i)[j] + x1.row(i)[j]
		})
	}},
	"multiply": {Run: func(b *emulated.Block) {
		z, x, y := at(b, 0), at(b, 2), at(b, 4)
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			z.row(i)[j] = x.row(i)[j] * y.row(i)[j]
		})
	}},
	"multiply_rows": {Run: func(b *emulated.Block) {
		z, x, y := at(b, 0), at(b, 2), at(b, 4)
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			z.row(i)[j] = x.row(i)[j] * y.row(i)[0]
		})
	}},
	"cross_matrix": {Run: func(b *emulated.Block) {
		y, x0, z, xl := at(b, 0), at(b, 2), at(b, 4), at(b, 6)
		elements(b, b.Int32(8), b.Int32(9), func(i, j int) {
			y.row(i)[j] = float32(x0.row(i)[j]*z.row(i)[j]) + xl.row(i)[j]
		})
	}},
	"cross_column": {Run: func(b *emulated.Block) {
		y, x0, z, xl, bias := at(b, 0), at(b, 2), at(b, 4), at(b, 6), at(b, 8)
		elements(b, b.Int32(10), b.Int32(11), func(i, j int) {
			v := float32(x0.row(i)[j] * z.row(i)[0])
			if bias.stride > 0 {
				v += bias.data[j]
			}
			y.row(i)[j] = v + xl.row(i)[j]
		})
	}},
	"scale_vectors": {Run: func(b *emulated.Block) {
		y, x, v, dim := at(b, 0), at(b, 2), at(b, 4), b.Int32(8)
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			y.row(i)[j] = x.row(i)[j/dim] * v.row(i)[j]
		})
	}},
	"dropout": {Run: func(b *emulated.Block) {
		y, x, step := at(b, 0), at(b, 2), emulated.Slice[uint64](b, 4)[0]
		layer, first, threshold, scale := uint64(b.Int64(5)), uint64(b.Int64(6)), uint64(b.Int64(7)), b.Float32(8)
		columns := b.Int32(10)
		elements(b, b.Int32(9), columns, func(i, j int) {
			if splitmix.Next(splitmix.Next(layer+step)+first+uint64(i*columns+j))>>32 < threshold {
				y.row(i)[j] = 0
			} else {
				y.row(i)[j] = x.row(i)[j] * scale
			}
		})
	}},
})
