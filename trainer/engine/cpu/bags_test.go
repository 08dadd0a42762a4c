package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// TestRowIndex compares the index of the reader, and the one that is made without it, with
// one that is made in the obvious way.
func TestRowIndex(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	for _, weighted := range []bool{false, true} {
		for _, pooling := range []ops.Pooling{ops.PoolSum, ops.PoolMean} {
			const rows, bagCount = 40, 300
			b := reader.Batch{Offsets: []int32{0}}
			for range bagCount {
				for range random.IntN(5) {
					b.Index = append(b.Index, int32(random.IntN(rows)))
					if weighted {
						b.BagWeights = append(b.BagWeights, float32(random.IntN(3))-0.5)
					}
				}
				b.Offsets = append(b.Offsets, int32(len(b.Index)))
			}
			v := bags{offsets: b.Offsets, index: b.Index, weights: b.BagWeights}
			var starts, bagOf []int32
			var factors []float32
			for row := range int32(rows) {
				starts = append(starts, int32(len(bagOf)))
				for bag := range bagCount {
					for at := b.Offsets[bag]; at < b.Offsets[bag+1]; at++ {
						if b.Index[at] != row {
							continue
						}
						factor := float32(1)
						if weighted {
							factor = b.BagWeights[at]
						}
						if pooling == ops.PoolMean {
							factor *= v.meanFactor(bag)
						}
						bagOf, factors = append(bagOf, int32(bag)), append(factors, factor)
					}
				}
			}
			starts = append(starts, int32(len(bagOf)))
			if !weighted && pooling == ops.PoolSum {
				factors = nil
			}
			var x rowIndex
			for _, given := range []bool{false, true, false} {
				in := &program.Inputs{}
				if given {
					b.Invert(rows)
					in.RowStarts, in.RowBags, in.RowWeights = b.RowStarts, b.RowBags, b.RowWeights
				}
				x.prepare(in, v, rows, pooling)
				if !slices.Equal(x.starts, starts) || !slices.Equal(x.bagOf, bagOf) || !slices.Equal(x.factors, factors) || (x.factors == nil) != (factors == nil) {
					t.Fatalf("weighted %v, pooling %v, given %v: %v %v %v, want %v %v %v", weighted, pooling, given, x.starts, x.bagOf, x.factors, starts, bagOf, factors)
				}
			}
		}
	}
}

// BenchmarkPool pools bags over the tiles of a mini-batch like Criteo's, on one thread:
// bags of one value, whose rows are copied, and bags of four, whose rows are summed up.
func BenchmarkPool(b *testing.B) {
	const examples, fields, dim, rows = 2048, 26, 16, 1 << 14
	random := rand.New(rand.NewPCG(1, 0))
	for _, size := range []int{1, 4} {
		e := &execution{}
		e.bags.offsets = []int32{0}
		for range examples * fields {
			for range size {
				e.bags.index = append(e.bags.index, int32(random.IntN(rows)))
			}
			e.bags.offsets = append(e.bags.offsets, int32(len(e.bags.index)))
		}
		in := matrix{data: make([]float32, rows*dim), stride: dim, columns: dim}
		out := matrix{data: make([]float32, tileExamples*fields*dim), stride: fields * dim, columns: fields * dim}
		s := &program.Step{Attributes: ops.Attributes{Fields: fields}}
		b.Run(fmt.Sprintf("values=%d", size), func(b *testing.B) {
			for b.Loop() {
				for lo := 0; lo < examples; lo += tileExamples {
					t := &tile{e: e, lo: lo, n: tileExamples}
					t.pool(s, out, in)
				}
			}
			kernel.ReportLimits(b, b.N, kernel.Work{
				Threads: 1, Bytes: 4 * dim * examples * fields * (size + 1), Memory: 4 * len(in.data),
			})
		})
	}
}
