package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"table_clicks": {Run: func(b *emulated.Block) {
		before, blocks := emulated.Slice[float32](b, 0), emulated.Slice[float32](b, 1)
		bags, labels, fields := emulated.Slice[int32](b, 2), emulated.Slice[float32](b, 3), int32(b.Int32(5))
		sum := float32(0)
		rowThreads(b, b.Int32(4)+1, func(p int) {
			before[p] = sum
			if p < b.Int32(4) {
				sum += labels[bags[p]/fields]
			}
		})
		blocks[b.Index.X] = sum
	}},
	"table_collect": {Run: func(b *emulated.Block) {
		flag, starts, before := emulated.Slice[int32](b, 0)[0], emulated.Slice[int32](b, 3), emulated.Slice[float32](b, 4)
		blocks, admitted := emulated.Slice[float32](b, 5), emulated.Slice[int32](b, 6)
		day, showDecay, least := uint32(b.Int64(7)), b.Float32(8), uint32(b.Int64(9))
		each := int32(b.Geometry.Block.X)
		rowThreads(b, b.Int32(10), func(i int) {
			row := tableRow(b, 1, 2, i, b.Int32(11))
			st := row[len(row)-4:]
			show, click, seen, count := st[0], st[1], math.Float32bits(st[2]), math.Float32bits(st[3])
			if count > 0 && showDecay != 1 && day > seen {
				f := power(float64(showDecay), day-seen)
				show, click = float32(float64(show)*f), float32(float64(click)*f)
			}
			lo, hi := starts[i], starts[i+1]
			clicks := before[hi] - before[lo]
			for _, block := range blocks[lo/each : hi/each] {
				clicks += block
			}
			shows := uint32(hi - lo)
			count += min(shows, math.MaxUint32-count)
			if flag == 0 {
				st[0], st[1] = show+float32(shows), click+clicks
				st[2], st[3] = math.Float32frombits(day), math.Float32frombits(count)
			}
			admitted[i] = oneIf(count >= least)
		})
	}},
	"table_admit": {Run: func(b *emulated.Block) {
		admitted, least := emulated.Slice[int32](b, 2), uint32(b.Int64(3))
		rowThreads(b, b.Int32(4), func(i int) {
			row := tableRow(b, 0, 1, i, b.Int32(5))
			count := math.Float32bits(row[len(row)-1])
			admitted[i] = oneIf(count > 0 && count >= least)
		})
	}},
	"table_gather": {Run: func(b *emulated.Block) {
		values, admitted, decays := emulated.Slice[float32](b, 0), emulated.Slice[int32](b, 3), b.Int32(5) != 0
		width, format := b.Int32(8), kernels.Format(b.Int32(9))
		elementsAtOnce(b, b.Int32(6), valueWords(width, format), b.Int32(10), func(i, w int) {
			word := tableRow(b, 1, 2, i, b.Int32(7))[w]
			for h := range perWord(format) {
				k := w*perWord(format) + h
				if k >= width {
					return
				}
				v := float32(0)
				if admitted[i] != 0 {
					v = widened(word, h, format)
					if decays {
						v = factors(emulated.Slice[float32](b, 4)[4*i:]).apply(k, v)
					}
				}
				values[i*width+k] = v
			}
		})
	}},
})

// slots are those that the whole pieces of a row have.
type slots struct{ lo, hi int32 }

// split returns the slots of the whole pieces of row i, and where the occurrences behind them begin.
func split(starts []int32, i int) (whole slots, tail int32) {
	n := (starts[i+1] - starts[i]) / kernel.SumPiece
	whole.lo = starts[i] / kernel.SumPiece
	whole.hi = whole.lo + n
	return whole, starts[i] + n*kernel.SumPiece
}

// pieceIn returns where the whole piece in a slot begins, if there is one. It asks all rows.
func pieceIn(slot int, starts []int32) (begin int32, ok bool) {
	for i := range len(starts) - 1 {
		if whole, _ := split(starts, i); int(whole.lo) <= slot && slot < int(whole.hi) {
			return starts[i] + (int32(slot)-whole.lo)*kernel.SumPiece, true
		}
	}
	return 0, false
}

// rowThreads calls f for each row of a mini-batch that a thread of the block works on.
func rowThreads(b *emulated.Block, n int, f func(i int)) {
	lo, hi := b.Linear()
	for i := lo; i < min(hi, n); i++ {
		f(i)
	}
}

// tableRow returns the row of the table, argument table, that is row i of the mini-batch by argument index.
func tableRow(b *emulated.Block, table, index, i, words int) []float32 {
	return emulated.Slice[float32](b, table)[int(emulated.Slice[int32](b, index)[i])*words:][:words]
}

// power is factor to the power n, by repeated squaring.
func power(factor float64, n uint32) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= factor
		}
		factor *= factor
	}
	return p
}

func oneIf(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// perWord is how many values a word has.
func perWord(f kernels.Format) int {
	if f == kernels.Float32 {
		return 1
	}
	return 2
}

// valueWords is how many words so many values take.
func valueWords(values int, f kernels.Format) int { return (values + perWord(f) - 1) / perWord(f) }

// widened is value h of a word.
func widened(word float32, h int, f kernels.Format) float32 {
	part := uint16(math.Float32bits(word) >> (16 * h))
	switch f {
	case kernels.Float16:
		return half.FromFloat16(part)
	case kernels.BFloat16:
		return half.FromBFloat16(part)
	}
	return word
}
