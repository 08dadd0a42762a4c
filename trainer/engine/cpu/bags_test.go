package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

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
