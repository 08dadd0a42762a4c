package ops

import (
	"fmt"
	"math/rand"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestOps checks every differentiable op but the loss, over random shapes.
func TestOps(t *testing.T) {
	cases := map[string]func(rng *rand.Rand) opCase{
		"sum":          sumCase,
		"row sum":      rowSumCase,
		"bias":         biasCase,
		"columns":      columnsCase,
		"concat":       concatCase,
		"interact":     interactCase,
		"fm":           fmCase,
		"cross vector": crossVectorCase,
		"cross matrix": crossMatrixCase,
		"cross rank":   crossLowRankCase,
		"batch norm":   batchNormCase,
		"dropout":      dropoutCase,
	}
	for a := range activationNames {
		act := Activation(a)
		cases["linear "+act.String()] = func(rng *rand.Rand) opCase { return linearCase(rng, act, true) }
		cases["linear no bias "+act.String()] = func(rng *rand.Rand) opCase { return linearCase(rng, act, false) }
		if act != Identity {
			cases["activate "+act.String()] = func(rng *rand.Rand) opCase { return activateCase(rng, act) }
		}
	}
	for _, weighted := range []bool{false, true} {
		for p := range poolingNames {
			pooling := Pooling(p)
			name := fmt.Sprintf("bag pool %v weighted=%v", pooling, weighted)
			cases[name] = func(rng *rand.Rand) opCase { return bagPoolCase(t, rng, &pooling, weighted) }
		}
		cases[fmt.Sprintf("bag pool mixed weighted=%v", weighted)] = func(rng *rand.Rand) opCase { return bagPoolCase(t, rng, nil, weighted) }
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(4) {
				rng := rand.New(rand.NewSource(seed))
				c := make(rng)
				t.Logf("seed %d, shapes %v", seed, c.shapes)
				runCase(t, rng, c)
			}
		})
	}
}

// dim draws a size.
func dim(rng *rand.Rand, lo, hi int) int { return lo + rng.Intn(hi-lo+1) }

func linearCase(rng *rand.Rand, act Activation, bias bool) opCase {
	n, i, o := dim(rng, 1, 5), dim(rng, 1, 6), dim(rng, 1, 5)
	c := opCase{
		shapes: [][]int{{n, i}, {i, o}, {o}},
		ours: func(in []*gorgonia.Node) (*gorgonia.Node, error) {
			return Linear(act, in[0], in[1], in[2])
		},
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			return p.activation(act, p.add(p.mul(in[0], in[1]), p.rows(n, in[2])))
		},
	}
	if !bias {
		c.shapes = c.shapes[:2]
		c.ours = func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Linear(act, in[0], in[1], nil) }
		c.primitive = func(p *prim, in []*gorgonia.Node) *gorgonia.Node { return p.activation(act, p.mul(in[0], in[1])) }
	}
	c.kinks = act == ReLU || act == LeakyReLU
	return c
}

func activateCase(rng *rand.Rand, act Activation) opCase {
	n, c := dim(rng, 1, 5), dim(rng, 1, 6)
	return opCase{
		shapes:    [][]int{{n, c}},
		ours:      func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Activate(act, in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node { return p.activation(act, in[0]) },
		kinks:     true,
	}
}

func sumCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 1, 5), dim(rng, 1, 6)
	return opCase{
		shapes: [][]int{{n, c}, {n, c}, {n, c}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Sum(in...) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			return p.add(p.add(in[0], in[1]), in[2])
		},
	}
}

func rowSumCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 1, 5), dim(rng, 1, 40)
	return opCase{
		shapes:    [][]int{{n, c}},
		ours:      func(in []*gorgonia.Node) (*gorgonia.Node, error) { return RowSum(in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node { return p.rowSum(in[0]) },
	}
}

func biasCase(rng *rand.Rand) opCase {
	n := dim(rng, 1, 5)
	return opCase{
		shapes:    [][]int{{1}},
		ours:      func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Bias(n, in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node { return p.rows(n, in[0]) },
	}
}

func columnsCase(rng *rand.Rand) opCase {
	n, groups, period := dim(rng, 1, 5), dim(rng, 1, 3), dim(rng, 1, 4)
	lo := rng.Intn(period)
	hi := dim(rng, lo+1, period)
	return opCase{
		shapes: [][]int{{n, groups * period}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Columns(period, lo, hi, in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			width := hi - lo
			return p.mul(in[0], p.constant(groups*period, groups*width, func(i, j int) float64 {
				if i == j/width*period+lo+j%width {
					return 1
				}
				return 0
			}))
		},
	}
}

func concatCase(rng *rand.Rand) opCase {
	n, a, b, c := dim(rng, 1, 5), dim(rng, 1, 4), dim(rng, 1, 4), dim(rng, 1, 4)
	return opCase{
		shapes: [][]int{{n, a}, {n, b}, {n, c}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Concat(in...) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			all := a + b + c
			left := p.add(p.mul(in[0], p.selection(a, all, 0, 0, a)), p.mul(in[1], p.selection(b, all, 0, a, b)))
			return p.add(left, p.mul(in[2], p.selection(c, all, 0, a+b, c)))
		},
	}
}

// pairSum adds fn(v, w, column of the pair) over all pairs of vectors.
func pairSum(p *prim, fields int, fn func(v, w, pair int) *gorgonia.Node) *gorgonia.Node {
	var sum *gorgonia.Node
	for v := 1; v < fields; v++ {
		for w := range v {
			term := fn(v, w, pairs(v)+w)
			if sum == nil {
				sum = term
			} else {
				sum = p.add(sum, term)
			}
		}
	}
	return sum
}

func interactCase(rng *rand.Rand) opCase {
	n, f, d := dim(rng, 1, 4), dim(rng, 2, 4), dim(rng, 1, 5)
	return opCase{
		shapes: [][]int{{n, f * d}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return Interact(d, in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			return pairSum(p, f, func(v, w, pair int) *gorgonia.Node {
				a := p.mul(in[0], p.selection(f*d, d, v*d, 0, d))
				b := p.mul(in[0], p.selection(f*d, d, w*d, 0, d))
				return p.mul(p.rowSum(p.times(a, b)), p.selection(1, pairs(f), 0, pair, 1))
			})
		},
	}
}

func fmCase(rng *rand.Rand) opCase {
	n, f, d := dim(rng, 1, 4), dim(rng, 2, 4), dim(rng, 1, 5)
	return opCase{
		shapes: [][]int{{n, f * d}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return FactorizationMachine(d, in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			return pairSum(p, f, func(v, w, _ int) *gorgonia.Node {
				a := p.mul(in[0], p.selection(f*d, d, v*d, 0, d))
				b := p.mul(in[0], p.selection(f*d, d, w*d, 0, d))
				return p.rowSum(p.times(a, b))
			})
		},
	}
}

func crossVectorCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 1, 4), dim(rng, 1, 5)
	return opCase{
		shapes: [][]int{{n, c}, {n, c}, {c, 1}, {c}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return CrossVector(in[0], in[1], in[2], in[3]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			z := p.cols(c, p.mul(in[1], in[2]))
			return p.add(p.add(p.times(in[0], z), p.rows(n, in[3])), in[1])
		},
	}
}

func crossMatrixCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 1, 4), dim(rng, 1, 5)
	return opCase{
		shapes: [][]int{{n, c}, {n, c}, {c, c}, {c}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return CrossMatrix(in[0], in[1], in[2], in[3]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			z := p.add(p.mul(in[1], in[2]), p.rows(n, in[3]))
			return p.add(p.times(in[0], z), in[1])
		},
	}
}

func crossLowRankCase(rng *rand.Rand) opCase {
	n, c, r := dim(rng, 1, 4), dim(rng, 1, 5), dim(rng, 1, 3)
	return opCase{
		shapes: [][]int{{n, c}, {n, c}, {c, r}, {r, c}, {c}},
		ours: func(in []*gorgonia.Node) (*gorgonia.Node, error) {
			return CrossLowRank(in[0], in[1], in[2], in[3], in[4])
		},
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			z := p.add(p.mul(p.mul(in[1], in[2]), in[3]), p.rows(n, in[4]))
			return p.add(p.times(in[0], z), in[1])
		},
	}
}

func batchNormCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 4, 9), dim(rng, 1, 4)
	return opCase{
		shapes: [][]int{{n, c}, {c}, {c}},
		ours: func(in []*gorgonia.Node) (*gorgonia.Node, error) {
			stats, err := BatchStats(in[0])
			if err != nil {
				return nil, err
			}
			return BatchNorm(in[0], in[1], in[2], stats)
		},
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			mean := p.mul(p.full(1, n, 1/float64(n)), in[0])
			centred := p.sub(in[0], p.rows(n, mean))
			variance := p.mul(p.full(1, n, 1/float64(n)), p.times(centred, centred))
			deviation := gorgonia.Must(gorgonia.Sqrt(p.add(variance, p.full(1, c, normEpsilon))))
			normalized := gorgonia.Must(gorgonia.HadamardDiv(centred, p.rows(n, deviation)))
			return p.add(p.times(normalized, p.rows(n, in[1])), p.rows(n, in[2]))
		},
	}
}

func dropoutCase(rng *rand.Rand) opCase {
	n, c := dim(rng, 1, 5), dim(rng, 1, 6)
	seed, layer, step := rng.Uint64(), rng.Intn(5), rng.Int63()
	drop := func(x *gorgonia.Node) (*gorgonia.Node, error) {
		in, err := NewInput(x.Graph(), "step", tensor.Int64, 1)
		if err != nil {
			return nil, err
		}
		in.Set([]int64{step}, 1)
		return Dropout(0.4, seed, layer, x, in.Node)
	}
	return opCase{
		shapes: [][]int{{n, c}},
		ours:   func(in []*gorgonia.Node) (*gorgonia.Node, error) { return drop(in[0]) },
		primitive: func(p *prim, in []*gorgonia.Node) *gorgonia.Node {
			// The mask is what dropout makes of ones.
			g := gorgonia.NewGraph()
			ones := make([]float32, n*c)
			for i := range ones {
				ones[i] = 1
			}
			y, err := drop(float32Node(p.t, g, "ones", ones, n, c))
			if err != nil {
				p.t.Fatal(err)
			}
			run(p.t, g)
			mask := values(y)
			return p.times(in[0], p.constant(n, c, func(i, j int) float64 { return float64(mask[i*c+j]) }))
		},
	}
}
