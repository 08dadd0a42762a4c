package cuda_test

import (
	"math/rand/v2"

	"aibox/reader"
)

// randomPass draws mini-batches of different sizes: bags of 0 to 2 features, some weighted.
func randomPass(rng *rand.Rand, s setup) *reader.Pass {
	pass := new(reader.Pass)
	for i := range 40 {
		pass.Keys = append(pass.Keys, uint64(i*7+1))
	}
	for n := range s.batches {
		examples := s.examples
		if n%3 == 2 {
			examples = max(1, s.examples/3)
		}
		b := reader.Batch{N: examples, Offsets: []int32{0}}
		for i := range pass.Keys {
			b.Rows = append(b.Rows, int32(i))
		}
		for range examples {
			b.Labels = append(b.Labels, float32(rng.IntN(2)))
			for range s.spec.Dense {
				b.Dense = append(b.Dense, float32(rng.NormFloat64()))
			}
			for range s.spec.Fields {
				for range rng.IntN(3) {
					b.Index = append(b.Index, int32(rng.IntN(len(pass.Keys))))
				}
				b.Offsets = append(b.Offsets, int32(len(b.Index)))
			}
		}
		if n%4 >= 2 {
			for range b.N {
				b.Weights = append(b.Weights, 0.5+rng.Float32())
			}
			for range b.Index {
				b.BagWeights = append(b.BagWeights, 0.25+rng.Float32())
			}
		}
		b.Invert(len(b.Rows))
		if n%5 < 3 { // of the others nothing is done ahead
			b.SetMade()
		}
		pass.Batches = append(pass.Batches, b)
	}
	return pass
}
