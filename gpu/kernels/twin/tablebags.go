package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"table_pool": {Run: func(b *emulated.Block) {
		y, means, values := at(b, 0), emulated.Slice[float32](b, 2), emulated.Slice[float32](b, 3)
		offsets, index := emulated.Slice[int32](b, 4), emulated.Slice[int32](b, 5)
		weights, weighted := emulated.Slice[float32](b, 6), b.Int32(7) != 0
		averaged, averages := emulated.Slice[int32](b, 8), b.Int32(9) != 0
		fields, width := b.Int32(11), b.Int32(12)
		elements(b, b.Int32(10), fields*width, func(i, j int) {
			f, k := j/width, j%width
			bag := i*fields + f
			lo, hi := offsets[bag], offsets[bag+1]
			factor, sum := float32(1), float32(0)
			if hi-lo == 1 && !weighted {
				sum = values[int(index[lo])*width+k]
			} else {
				for at := lo; at < hi; at++ {
					v := values[int(index[at])*width+k]
					if weighted {
						sum = kernel.FMA(weights[at], v, sum)
					} else {
						sum += v
					}
				}
				if averages && averaged[f] != 0 && hi > lo {
					total := float32(hi - lo)
					if weighted {
						total = 0
						for _, w := range weights[lo:hi] {
							total += w
						}
					}
					if factor = 0; total != 0 {
						factor = 1 / total
					}
					sum *= factor
				}
			}
			y.row(i)[j] = sum
			if averages && k == 0 {
				means[bag] = factor
			}
		})
	}},
	"table_gradients": {Run: func(b *emulated.Block) {
		grads, dy := emulated.Slice[float32](b, 0), at(b, 1)
		starts, bags := emulated.Slice[int32](b, 3), emulated.Slice[int32](b, 4)
		weights, weighted := emulated.Slice[float32](b, 5), b.Int32(6) != 0
		means, averages := emulated.Slice[float32](b, 7), b.Int32(8) != 0
		fields, width := b.Int32(10), b.Int32(11)
		elements(b, b.Int32(9), width, func(i, k int) {
			sum := float32(0)
			for at := starts[i]; at < starts[i+1]; at++ {
				bag := int(bags[at])
				g := dy.row(bag / fields)[bag%fields*width+k]
				if !weighted && !averages {
					sum += g
					continue
				}
				factor := float32(1)
				if averages {
					factor = means[bag]
				}
				if weighted {
					factor *= weights[at]
				}
				sum = kernel.FMA(factor, g, sum)
			}
			grads[i*width+k] = sum
		})
	}},
})
