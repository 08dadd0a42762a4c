package twin

import (
	"math"

	"aibox/gpu/emulated"
)

const (
	normEpsilon  = 1e-5
	normMomentum = 0.1
)

var _ = add(emulated.Kernels{
	"norm_squares": {Run: func(b *emulated.Block) {
		x, sums, count := at(b, 1), at(b, 3), float32(b.Int32(7))
		sumChunk(b, b.Int32(5), b.Int32(6), func(i, j int) float64 {
			d := float64(x.row(i)[j]) - float64(sums.data[j]/count)
			return float64(d * d)
		})
	}},
	"norm_statistics": {Run: func(b *emulated.Block) {
		stats, sums, squares, count := at(b, 0), at(b, 2), at(b, 4), float32(b.Int32(7))
		elements(b, 1, b.Int32(6), func(_, j int) {
			stats.row(0)[j] = sums.data[j] / count
			stats.row(1)[j] = squares.data[j] / count
		})
	}},
	"normalize": {Run: func(b *emulated.Block) {
		y, x, gamma, beta, stats := at(b, 0), at(b, 2), at(b, 4), at(b, 6), at(b, 8)
		lo, hi := chunk(b, b.Int32(10))
		blockColumns(b, b.Int32(11), func(j int) {
			mean, scale := stats.row(0)[j], inverseDeviation(stats.row(1)[j])
			for i := lo; i < hi; i++ {
				y.row(i)[j] = float32(gamma.data[j]*float32((x.row(i)[j]-mean)*scale)) + beta.data[j]
			}
		})
	}},
	"norm_gamma": {Run: func(b *emulated.Block) {
		x, stats, dy := at(b, 1), at(b, 3), at(b, 5)
		sumChunk(b, b.Int32(7), b.Int32(8), func(i, j int) float64 {
			normalized := float32((x.row(i)[j] - stats.row(0)[j]) * inverseDeviation(stats.row(1)[j]))
			return float64(float32(dy.row(i)[j] * normalized))
		})
	}},
	"norm_input": {Run: func(b *emulated.Block) {
		dx, x, gamma, stats, dgamma, dbeta, dy := at(b, 0), at(b, 2), at(b, 4), at(b, 6), at(b, 8), at(b, 10), at(b, 12)
		count := float32(b.Int32(16))
		lo, hi := chunk(b, b.Int32(14))
		blockColumns(b, b.Int32(15), func(j int) {
			mean, scale := stats.row(0)[j], inverseDeviation(stats.row(1)[j])
			meanGrad, slope := dbeta.data[j]/count, dgamma.data[j]/count
			factor := gamma.data[j] * scale
			for i := lo; i < hi; i++ {
				normalized := float32((x.row(i)[j] - mean) * scale)
				dx.row(i)[j] = factor * (dy.row(i)[j] - meanGrad - float32(normalized*slope))
			}
		})
	}},
	"update_running": {Run: func(b *emulated.Block) {
		running, stats, flag, count := at(b, 0), at(b, 2), emulated.Slice[int32](b, 4), b.Int32(6)
		if flag[0] != 0 {
			return
		}
		elements(b, 1, b.Int32(5), func(_, j int) {
			mean, variance := &running.row(0)[j], &running.row(1)[j]
			*mean += float32(normMomentum * (stats.row(0)[j] - *mean))
			if count > 1 {
				unbiased := float32(float64(count) / float64(count-1))
				*variance += float32(normMomentum * (float32(stats.row(1)[j]*unbiased) - *variance))
			}
		})
	}},
})

// inverseDeviation is 1/√(variance + ε).
func inverseDeviation(variance float32) float32 {
	return float32(1 / math.Sqrt(float64(variance)+normEpsilon))
}
