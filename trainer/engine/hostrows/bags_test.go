package hostrows

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
)

// BenchmarkPool pools bags over the tiles of a mini-batch like Criteo's, on one thread:
// bags of one value, whose rows are copied, and bags of four, whose rows are summed up.
func BenchmarkPool(b *testing.B) {
	const examples, tile, fields, dim, rows = 2048, 256, 26, 16, 1 << 14
	random := rand.New(rand.NewPCG(1, 0))
	for _, size := range []int{1, 4} {
		v := &Bags{fields: fields, dim: dim, offsets: []int32{0}}
		for range examples * fields {
			for range size {
				v.index = append(v.index, int32(random.IntN(rows)))
			}
			v.offsets = append(v.offsets, int32(len(v.index)))
		}
		in, out := make([]float32, rows*dim), make([]float32, tile*fields*dim)
		b.Run(fmt.Sprintf("values=%d", size), func(b *testing.B) {
			for b.Loop() {
				for lo := 0; lo < examples; lo += tile {
					v.Pool(lo, tile, out, fields*dim, in)
				}
			}
			kernel.ReportLimits(b, b.N, kernel.Work{
				Threads: 1, Bytes: 4 * dim * examples * fields * (size + 1), Memory: 4 * len(in),
			})
		})
	}
}
