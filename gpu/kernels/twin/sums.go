package twin

import (
	"math"

	"aibox/gpu/emulated"
)

const (
	chunkRows    = 256
	chunkColumns = 32
	chunkLanes   = 8
)

var _ = add(emulated.Kernels{
	"column_sums": {Run: func(b *emulated.Block) {
		x := at(b, 1)
		sumChunk(b, b.Int32(3), b.Int32(4), func(i, j int) float64 { return float64(x.row(i)[j]) })
	}},
	"column_dots": {Run: func(b *emulated.Block) {
		x, g := at(b, 1), at(b, 3)
		sumChunk(b, b.Int32(5), b.Int32(6), func(i, j int) float64 { return float64(x.row(i)[j]) * float64(g.row(i)[0]) })
	}},
	"finish_columns": {Run: func(b *emulated.Block) {
		chunks, of := b.Int32(0), 1+3*b.Index.Y
		sums, work, columns := emulated.Slice[float32](b, of), emulated.Slice[uint64](b, of+1), b.Int32(of+2)
		blockColumns(b, columns, func(j int) {
			sums[j] = float32(columnSum(0, chunks, func(c int) float64 {
				return math.Float64frombits(work[c*columns+j])
			}))
		})
	}},
})

// blockColumns calls f for each column that the block works on.
func blockColumns(b *emulated.Block, columns int, f func(j int)) {
	for j := b.Index.X * chunkColumns; j < min((b.Index.X+1)*chunkColumns, columns); j++ {
		f(j)
	}
}

// chunk returns the rows that the block works on.
func chunk(b *emulated.Block, rows int) (lo, hi int) {
	return b.Index.Y * chunkRows, min((b.Index.Y+1)*chunkRows, rows)
}

// sumChunk writes the sums of the block's columns over its chunk of rows to argument 0.
func sumChunk(b *emulated.Block, rows, columns int, term func(i, j int) float64) {
	work := emulated.Slice[uint64](b, 0)
	lo, hi := chunk(b, rows)
	blockColumns(b, columns, func(j int) {
		work[b.Index.Y*columns+j] = math.Float64bits(columnSum(lo, hi, func(i int) float64 { return term(i, j) }))
	})
}

// columnSum adds up terms lo to hi in the order of the threads of a block.
func columnSum(lo, hi int, term func(i int) float64) float64 {
	var l [chunkLanes]float64
	for i := lo; i < hi; i++ {
		l[(i-lo)%chunkLanes] += term(i)
	}
	for w := chunkLanes / 2; w > 0; w /= 2 {
		for i := range w {
			l[i] += l[i+w]
		}
	}
	return l[0]
}
