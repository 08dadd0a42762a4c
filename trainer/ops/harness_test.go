package ops

import (
	"math"
	"math/rand"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// opCase is an op as built by this package and the same function composed of
// Gorgonia's primitive ops in double precision. Vectors (C) are matrices (1, C)
// in the composition.
type opCase struct {
	shapes    [][]int // differentiable operands
	ours      func(in []*gorgonia.Node) (*gorgonia.Node, error)
	primitive func(p *prim, in []*gorgonia.Node) *gorgonia.Node
	// kinks says that the function has corners, near which differences are
	// worth nothing: operands keep away from zero, and a step that seems to
	// cross a corner is repeated with a shorter one.
	kinks bool
}

// runCase compares value and gradients three ways: the op under gorgonia.Grad,
// the composition under gorgonia.Grad, and central differences of the op. The
// gradients are those of Σ r·y for random r.
func runCase(t *testing.T, rng *rand.Rand, c opCase) {
	t.Helper()
	data := make([][]float32, len(c.shapes))
	for i, s := range c.shapes {
		data[i] = randomData(rng, product2(s), c.kinks)
	}
	value := forward(t, c, data)
	r := randomData(rng, len(value), false)
	ours := gradients(t, c, data, r)
	wantValue, wantGrads := primitives(t, c, data, r)

	const tolerance = 2e-5 // single precision over sums of some tens of terms of size 1
	for i, v := range value {
		if math.Abs(float64(v)-wantValue[i]) > tolerance*(1+math.Abs(wantValue[i])) {
			t.Errorf("value[%d] = %g, primitive ops give %g", i, v, wantValue[i])
		}
	}
	for k, grad := range ours {
		for i, g := range grad {
			if want := wantGrads[k][i]; math.Abs(float64(g)-want) > tolerance*(4+math.Abs(want)) {
				t.Errorf("gradient of operand %d[%d] = %g, primitive ops give %g", k, i, g, want)
			}
		}
	}
	cost := func() float64 {
		var sum float64
		for i, v := range forward(t, c, data) {
			sum += float64(v) * float64(r[i])
		}
		return sum
	}
	for k := range data {
		for i, v := range data[k] {
			at := func(x float32) float64 {
				data[k][i] = x
				return cost()
			}
			difference := func(h float32) float64 {
				return (8*(at(v+h)-at(v-h)) - (at(v+2*h) - at(v-2*h))) / float64(12*h)
			}
			g, want := float64(ours[k][i]), difference(1.0/64)
			if c.kinks && math.Abs(g-want) > 1e-3*(1+math.Abs(want)) {
				want = difference(1.0 / 4096) // is the kink still within the step?
			}
			data[k][i] = v
			if math.Abs(g-want) > 1e-3*(1+math.Abs(want)) {
				t.Errorf("gradient of operand %d[%d] = %g, differences say %g", k, i, g, want)
			}
		}
	}
}

// randomData draws values in ±(0.1, 1.1) when they must avoid zero, else in
// (-1, 1).
func randomData(rng *rand.Rand, n int, awayFromZero bool) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = 2*rng.Float32() - 1
		if awayFromZero {
			data[i] += float32(math.Copysign(0.1, float64(data[i])))
		}
	}
	return data
}

func product2(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// float32Node adds an input with a value.
func float32Node(t testing.TB, g *gorgonia.ExprGraph, name string, data []float32, shape ...int) *gorgonia.Node {
	t.Helper()
	in, err := NewInput(g, name, tensor.Float32, shape...)
	if err != nil {
		t.Fatal(err)
	}
	in.Set(data, shape...)
	return in.Node
}

func operands(t testing.TB, g *gorgonia.ExprGraph, c opCase, data [][]float32) []*gorgonia.Node {
	var in []*gorgonia.Node
	for i, s := range c.shapes {
		in = append(in, float32Node(t, g, string(rune('a'+i)), data[i], s...))
	}
	return in
}

func run(t testing.TB, g *gorgonia.ExprGraph) {
	t.Helper()
	vm := gorgonia.NewTapeMachine(g)
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
}

func values(n *gorgonia.Node) []float32 {
	return append([]float32(nil), n.Value().(*tensor.Dense).Float32s()...)
}

func forward(t testing.TB, c opCase, data [][]float32) []float32 {
	g := gorgonia.NewGraph()
	y, err := c.ours(operands(t, g, c, data))
	if err != nil {
		t.Fatal(err)
	}
	run(t, g)
	got := y.Value().(*tensor.Dense)
	if !got.Shape().Eq(y.Shape()) {
		t.Errorf("value has shape %v, the node %v", got.Shape(), y.Shape())
	}
	return values(y)
}

func gradients(t testing.TB, c opCase, data [][]float32, r []float32) [][]float32 {
	g := gorgonia.NewGraph()
	in := operands(t, g, c, data)
	y, err := c.ours(in)
	if err != nil {
		t.Fatal(err)
	}
	weight := float32Node(t, g, "r", r, y.Shape()...)
	cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, weight))))
	grads, err := gorgonia.Grad(cost, in...)
	if err != nil {
		t.Fatal(err)
	}
	run(t, g)
	var result [][]float32
	for _, n := range grads {
		result = append(result, values(n))
	}
	return result
}

// prim composes functions of Gorgonia's primitive ops in double precision.
type prim struct {
	t testing.TB
	g *gorgonia.ExprGraph
	n int
}

// constant is a matrix whose elements at gives.
func (p *prim) constant(rows, cols int, at func(i, j int) float64) *gorgonia.Node {
	data := make([]float64, rows*cols)
	for i := range rows {
		for j := range cols {
			data[i*cols+j] = at(i, j)
		}
	}
	p.n++
	return gorgonia.NewMatrix(p.g, tensor.Float64, gorgonia.WithShape(rows, cols), gorgonia.WithName("constant"+string(rune('a'+p.n))),
		gorgonia.WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(data))))
}

func (p *prim) full(rows, cols int, v float64) *gorgonia.Node {
	return p.constant(rows, cols, func(int, int) float64 { return v })
}

// selection is the 0/1 matrix (from, to) that moves column lo+j to column at+j,
// j < width: x·selection.
func (p *prim) selection(from, to, lo, at, width int) *gorgonia.Node {
	return p.constant(from, to, func(i, j int) float64 {
		if j >= at && j < at+width && i == lo+j-at {
			return 1
		}
		return 0
	})
}

func (p *prim) mul(a, b *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(gorgonia.Mul(a, b)) }
func (p *prim) add(a, b *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(gorgonia.Add(a, b)) }
func (p *prim) sub(a, b *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(gorgonia.Sub(a, b)) }
func (p *prim) times(a, b *gorgonia.Node) *gorgonia.Node {
	return gorgonia.Must(gorgonia.HadamardProd(a, b))
}

// rows repeats a (1, C) matrix n times.
func (p *prim) rows(n int, a *gorgonia.Node) *gorgonia.Node { return p.mul(p.full(n, 1, 1), a) }

// rowSum is (N, 1).
func (p *prim) rowSum(a *gorgonia.Node) *gorgonia.Node {
	return p.mul(a, p.full(a.Shape()[1], 1, 1))
}

// cols repeats an (N, 1) matrix c times.
func (p *prim) cols(c int, a *gorgonia.Node) *gorgonia.Node { return p.mul(a, p.full(1, c, 1)) }

func (p *prim) activation(a Activation, x *gorgonia.Node) *gorgonia.Node {
	switch a {
	case ReLU:
		return gorgonia.Must(gorgonia.Rectify(x))
	case LeakyReLU:
		s := x.Shape()
		neg := gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Neg(x))))
		return p.sub(gorgonia.Must(gorgonia.Rectify(x)), p.times(neg, p.full(s[0], s[1], leak)))
	case Tanh:
		return gorgonia.Must(gorgonia.Tanh(x))
	case Sigmoid:
		return gorgonia.Must(gorgonia.Sigmoid(x))
	}
	return x
}

func primitives(t testing.TB, c opCase, data [][]float32, r []float32) (value []float64, grads [][]float64) {
	build := func() (g *gorgonia.ExprGraph, in []*gorgonia.Node, y *gorgonia.Node) {
		g = gorgonia.NewGraph()
		for i, s := range c.shapes {
			rows, cols := 1, s[0]
			if len(s) == 2 {
				rows, cols = s[0], s[1]
			}
			wide := make([]float64, len(data[i]))
			for j, v := range data[i] {
				wide[j] = float64(v)
			}
			in = append(in, gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(rows, cols), gorgonia.WithName(string(rune('a'+i))),
				gorgonia.WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(wide)))))
		}
		return g, in, c.primitive(&prim{t: t, g: g}, in)
	}
	g, _, y := build()
	run(t, g)
	value = append(value, y.Value().Data().([]float64)...)

	g, in, y := build()
	s := y.Shape()
	weight := (&prim{t: t, g: g, n: 100}).constant(s[0], s[1], func(i, j int) float64 { return float64(r[i*s[1]+j]) })
	cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, weight))))
	nodes, err := gorgonia.Grad(cost, in...)
	if err != nil {
		t.Fatal(err)
	}
	run(t, g)
	for _, n := range nodes {
		switch d := n.Value().Data().(type) {
		case []float64:
			grads = append(grads, append([]float64(nil), d...))
		case float64:
			grads = append(grads, []float64{d})
		}
	}
	return value, grads
}
