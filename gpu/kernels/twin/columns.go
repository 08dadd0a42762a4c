package twin

import "aibox/gpu/emulated"

var _ = add(emulated.Kernels{
	"copy_rows": {Run: func(b *emulated.Block) {
		y, x := at(b, 0), at(b, 2)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] = x.row(i)[j]
		})
	}},
	"columns": {Run: func(b *emulated.Block) {
		y, x, period, lo, width := at(b, 0), at(b, 2), b.Int32(6), b.Int32(7), b.Int32(8)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] = x.row(i)[j/width*period+lo+j%width]
		})
	}},
	"spread": {Run: func(b *emulated.Block) {
		dx, dy, period, lo, width := at(b, 0), at(b, 2), b.Int32(6), b.Int32(7), b.Int32(8)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			if k := j%period - lo; k >= 0 && k < width {
				dx.row(i)[j] = dy.row(i)[j/period*width+k]
			} else {
				dx.row(i)[j] = 0
			}
		})
	}},
	"repeat": {Run: func(b *emulated.Block) {
		y, x := at(b, 0), at(b, 2)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] = x.row(i)[0]
		})
	}},
	"clear_columns": {Run: func(b *emulated.Block) {
		y := at(b, 0)
		elements(b, b.Int32(2), b.Int32(3), func(i, j int) { y.row(i)[j] = 0 })
	}},
	"bias": {Run: func(b *emulated.Block) {
		y, x := at(b, 0), at(b, 2)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] = x.data[0]
		})
	}},
})
