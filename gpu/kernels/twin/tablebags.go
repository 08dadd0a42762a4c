package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"table_pool": {Run: func(b *emulated.Block) {
		y, means, values := at(b, 0), emulated.Slice[float32](b, 2), emulated.Slice[float32](b, 3)
		index, offsets, several := emulated.Slice[int32](b, 4), emulated.Slice[int32](b, 5), b.Int32(6) != 0
		weights, weighted := emulated.Slice[float32](b, 7), b.Int32(8) != 0
		averaged, averages := emulated.Slice[int32](b, 9), b.Int32(10) != 0
		fields, width := b.Int32(12), b.Int32(13)
		elementsAtOnce(b, b.Int32(11), fields*width, b.Int32(14), func(i, j int) {
			f, k := j/width, j%width
			bag := i*fields + f
			lo, hi := int32(bag), int32(bag+1)
			if several {
				lo, hi = offsets[bag], offsets[bag+1]
			}
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
	"table_piece_gradients": {Run: func(b *emulated.Block) {
		pieces, starts, width := emulated.Slice[float32](b, 0), emulated.Slice[int32](b, 3), b.Int32(12)
		sum := gradientsOf(b, b.Int32(11), width)
		movedRows(b, b.Int32(9), func(slot int) {
			at, ok := pieceIn(slot, starts[:b.Int32(10)+1])
			for k := range width {
				pieces[slot*width+k] = 0
				if ok {
					pieces[slot*width+k] = sum(at, at+kernel.SumPiece, k)
				}
			}
		})
	}},
	"table_gradients": {Run: func(b *emulated.Block) {
		grads, starts, pieces, width := emulated.Slice[float32](b, 0), emulated.Slice[int32](b, 3), emulated.Slice[float32](b, 9), b.Int32(12)
		sum := gradientsOf(b, b.Int32(11), width)
		elementsAtOnce(b, b.Int32(10), width, b.Int32(13), func(i, k int) {
			whole, tail := split(starts, i)
			total := float32(math.Copysign(0, -1)) // which changes no sum
			for slot := whole.lo; slot < whole.hi; slot++ {
				total += pieces[int(slot)*width+k]
			}
			if whole.lo == whole.hi || tail < starts[i+1] {
				total += sum(tail, starts[i+1], k)
			}
			grads[i*width+k] = total
		})
	}},
})

// gradientsOf returns what adds up column k of the gradients of occurrences, of which arguments 1 to 8 are.
func gradientsOf(b *emulated.Block, fields, width int) func(begin, end int32, k int) float32 {
	dy, bags := at(b, 1), emulated.Slice[int32](b, 4)
	weights, weighted := emulated.Slice[float32](b, 5), b.Int32(6) != 0
	means, averages := emulated.Slice[float32](b, 7), b.Int32(8) != 0
	return func(begin, end int32, k int) (sum float32) {
		for at := begin; at < end; at++ {
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
		return sum
	}
}
