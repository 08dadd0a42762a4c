package ops

import (
	"math/rand"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestScaleVectors compares values and gradients of the vectors with primitive ops and with
// differences.
func TestScaleVectors(t *testing.T) {
	for seed := range int64(8) {
		rng := rand.New(rand.NewSource(seed))
		n, features, d := dim(rng, 1, 5), dim(rng, 1, 4), dim(rng, 1, 4)
		x := randomData(rng, n*features, false)
		runCase(t, rng, opCase{
			shapes: [][]int{{features * d}},
			ours: func(in []*gorgonia.Node) (*gorgonia.Node, error) {
				input, err := NewInput(in[0].Graph(), "x", tensor.Float32, n, features)
				if err != nil {
					return nil, err
				}
				input.Set(x, n, features)
				return ScaleVectors(d, input.Node, in[0])
			},
			primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
				return p.times(p.rows(n, in[0]), p.constant(n, features*d, func(i, j int) float64 { return float64(x[i*features+j/d]) }))
			},
		})
	}
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	v := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(5), gorgonia.WithName("v"))
	if _, err := ScaleVectors(2, x, v); err == nil {
		t.Error("5 values are no 3 vectors of 2")
	}
}
