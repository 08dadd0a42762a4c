package twin

import (
	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"row_sum": {Run: func(b *emulated.Block) {
		y, x, columns := at(b, 0), at(b, 2), b.Int32(5)
		rows(b, b.Int32(4), func(i int) {
			y.row(i)[0] = laneSum(columns, func(sum float32, j int) float32 { return sum + x.row(i)[j] })
		})
	}},
	"row_dot": {Run: func(b *emulated.Block) {
		z, x, y, columns := at(b, 0), at(b, 2), at(b, 4), b.Int32(7)
		rows(b, b.Int32(6), func(i int) {
			z.row(i)[0] = laneSum(columns, func(sum float32, j int) float32 {
				return kernel.FMA(x.row(i)[j], y.row(i)[j], sum)
			})
		})
	}},
	"fm": {Run: func(b *emulated.Block) {
		y, x, columns, dim := at(b, 0), at(b, 2), b.Int32(5), b.Int32(6)
		rows(b, b.Int32(4), func(i int) {
			row := x.row(i)[:columns]
			y.row(i)[0] = 0.5 * laneSum(dim, func(total float32, d int) float32 {
				sum, pairs := vectorSum(row, dim, d), float32(0)
				for f := d; f < columns; f += dim {
					pairs += float32(row[f] * (sum - row[f]))
				}
				return total + pairs
			})
		})
	}},
	"fm_grad": {Run: func(b *emulated.Block) {
		dx, x, dy, columns, dim := at(b, 0), at(b, 2), at(b, 4), b.Int32(7), b.Int32(8)
		elements(b, b.Int32(6), dim, func(i, d int) {
			row, g := x.row(i)[:columns], dy.row(i)[0]
			sum := vectorSum(row, dim, d)
			for f := d; f < columns; f += dim {
				dx.row(i)[f] = g * (sum - row[f])
			}
		})
	}},
})

// lanes is the number of threads that sum up a row.
const lanes = 16

// rows calls f for each row that threads of the block work on.
func rows(b *emulated.Block, n int, f func(i int)) {
	lo, hi := b.Linear()
	for i := lo / lanes; i < min(hi/lanes, n); i++ {
		f(i)
	}
}

// laneSum sums up n elements of a row, in the order of kernel.Sum. next returns the sum of a lane
// with element j.
func laneSum(n int, next func(sum float32, j int) float32) float32 {
	var l [lanes]float32
	for j := range n {
		l[j%lanes] = next(l[j%lanes], j)
	}
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			l[i] += l[i+w]
		}
	}
	return l[0]
}

// vectorSum returns the sum of number d of all vectors of a row.
func vectorSum(row []float32, dim, d int) float32 {
	var sum float32
	for f := d; f < len(row); f += dim {
		sum += row[f]
	}
	return sum
}
