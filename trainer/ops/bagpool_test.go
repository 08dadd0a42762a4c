package ops

import (
	"math/rand"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// testBags is a random sparse part of a mini-batch.
type testBags struct {
	n, fields, rows int
	offsets, index  []int32
	weights         []float32 // nil: all 1
}

// randomBags draws bags of 0 to 3 features, the same row several times in
// many of them.
func randomBags(rng *rand.Rand, n, fields, rows int, weighted bool) testBags {
	b := testBags{n: n, fields: fields, rows: rows, offsets: []int32{0}}
	for range n * fields {
		for range rng.Intn(4) {
			b.index = append(b.index, int32(rng.Intn(rows)))
			if weighted {
				b.weights = append(b.weights, 0.5+rng.Float32())
			}
		}
		b.offsets = append(b.offsets, int32(len(b.index)))
	}
	return b
}

// nodes adds the bags to g as BagPool wants them.
func (b testBags) nodes(t testing.TB, g *gorgonia.ExprGraph) Bags {
	input := func(name string, of tensor.Dtype, backing any, n int) *gorgonia.Node {
		in, err := NewInput(g, name, of, n)
		if err != nil {
			t.Fatal(err)
		}
		in.Set(backing, n)
		return in.Node
	}
	index, weights := b.index, b.weights
	if len(index) == 0 {
		index = []int32{0}
	}
	if len(weights) == 0 {
		weights = []float32{1}
	}
	return Bags{
		Offsets: input("offsets", tensor.Int32, b.offsets, len(b.offsets)),
		Index:   input("index", tensor.Int32, index, len(index)),
		Weights: input("weights", tensor.Float32, weights, len(weights)),
	}
}

// bagPoolCase has fields of one pooling or, if there is none, of either.
func bagPoolCase(t *testing.T, rng *rand.Rand, p *Pooling, weighted bool) opCase {
	n, fields, rows, r := dim(rng, 1, 4), dim(rng, 1, 3), dim(rng, 1, 6), dim(rng, 1, 4)
	of := make([]Pooling, fields)
	for f := range of {
		if of[f] = Pooling(rng.Intn(len(poolingNames))); p != nil {
			of[f] = *p
		}
	}
	bags := randomBags(rng, n, fields, rows, weighted)
	return opCase{
		shapes: [][]int{{rows, r}},
		ours: func(in []*gorgonia.Node) (*gorgonia.Node, error) {
			return BagPool(of, in[0], bags.nodes(t, in[0].Graph()))
		},
		// Per field the matrix of how much of each row an example takes, times
		// the rows, put into the field's columns.
		primitive: func(pr *prim, in []*gorgonia.Node) *gorgonia.Node {
			var sum *gorgonia.Node
			for f := range fields {
				shares := make([]float64, n*rows)
				for e := range n {
					b := e*fields + f
					total := 0.0
					for k := bags.offsets[b]; k < bags.offsets[b+1]; k++ {
						w := 1.0
						if weighted {
							w = float64(bags.weights[k])
						}
						shares[e*rows+int(bags.index[k])] += w
						total += w
					}
					if of[f] == PoolMean && total != 0 {
						for i := range rows {
							shares[e*rows+i] /= total
						}
					}
				}
				pool := pr.constant(n, rows, func(i, j int) float64 { return shares[i*rows+j] })
				term := pr.mul(pr.mul(pool, in[0]), pr.selection(r, fields*r, 0, f*r, r))
				if sum == nil {
					sum = term
				} else {
					sum = pr.add(sum, term)
				}
			}
			return sum
		},
	}
}
