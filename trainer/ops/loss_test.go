package ops

import (
	"math"
	"math/rand"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// lossOf runs Loss and its gradient under gorgonia.Grad.
func lossOf(t *testing.T, z, y, w []float32) (loss float64, scalar float32, dz []float32) {
	t.Helper()
	n := len(z)
	g := gorgonia.NewGraph()
	logits := float32Node(t, g, "z", z, n, 1)
	cost, err := Loss(logits, float32Node(t, g, "y", y, n), float32Node(t, g, "w", w, n))
	if err != nil {
		t.Fatal(err)
	}
	grads, err := gorgonia.Grad(cost, logits)
	if err != nil {
		t.Fatal(err)
	}
	run(t, g)
	return LossValue(cost), float32(*cost.Value().(*gorgonia.F32)), values(grads[0])
}

// TestLoss compares loss and gradient with equation 1 written out in Gorgonia's
// primitive ops, in double precision: y·log p + (1-y)·log(1-p).
func TestLoss(t *testing.T) {
	for seed := range int64(4) {
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewSource(seed))
		n := dim(rng, 1, 40)
		z, w := randomData(rng, n, false), randomData(rng, n, false)
		y := make([]float32, n)
		for i := range y {
			y[i] = float32(rng.Intn(2))
			z[i] *= 8
			w[i]++
		}
		loss, scalar, dz := lossOf(t, z, y, w)

		g := gorgonia.NewGraph()
		p := &prim{t: t, g: g}
		column := func(x []float32) func(i, j int) float64 {
			return func(i, _ int) float64 { return float64(x[i]) }
		}
		logits := p.constant(n, 1, column(z))
		labels, weights := p.constant(n, 1, column(y)), p.constant(n, 1, column(w))
		ones := p.full(n, 1, 1)
		prob := gorgonia.Must(gorgonia.Sigmoid(logits))
		click := p.times(labels, gorgonia.Must(gorgonia.Log(prob)))
		none := p.times(p.sub(ones, labels), gorgonia.Must(gorgonia.Log(p.sub(ones, prob))))
		terms := p.times(p.times(weights, p.add(click, none)), p.full(n, 1, -1/float64(n)))
		cost := gorgonia.Must(gorgonia.Sum(terms))
		grads, err := gorgonia.Grad(cost, logits)
		if err != nil {
			t.Fatal(err)
		}
		run(t, g)
		want := cost.Value().Data().(float64)
		if math.Abs(loss-want) > 1e-6*(1+want) || math.Abs(float64(scalar)-want) > 1e-6*(1+want) {
			t.Errorf("loss is %g (scalar %g), primitive ops give %g", loss, scalar, want)
		}
		var wantGrad []float64
		switch d := grads[0].Value().Data().(type) {
		case []float64:
			wantGrad = d
		case float64:
			wantGrad = []float64{d}
		}
		for i, d := range dz {
			if math.Abs(float64(d)-wantGrad[i]) > 1e-6 {
				t.Errorf("gradient[%d] = %g, primitive ops give %g", i, d, wantGrad[i])
			}
		}
	}
}

// TestLossExtremes checks logits whose probabilities single precision cannot
// tell from 0 and 1.
func TestLossExtremes(t *testing.T) {
	for _, c := range []struct {
		z, y       float32
		loss, grad float64
	}{
		{z: 200, y: 1, loss: 0, grad: 0},
		{z: 200, y: 0, loss: 200, grad: 1},
		{z: -200, y: 1, loss: 200, grad: -1},
		{z: -200, y: 0, loss: 0, grad: 0},
		{z: 0, y: 0, loss: math.Ln2, grad: 0.5},
	} {
		loss, _, dz := lossOf(t, []float32{c.z}, []float32{c.y}, []float32{1})
		if math.Abs(loss-c.loss) > 1e-6 || math.Abs(float64(dz[0])-c.grad) > 1e-6 {
			t.Errorf("logit %g, label %g: loss %g, gradient %g, want %g and %g", c.z, c.y, loss, dz[0], c.loss, c.grad)
		}
	}
	nan := float32(math.NaN())
	if loss, _, _ := lossOf(t, []float32{nan, 1}, []float32{0, 1}, []float32{1, 1}); !math.IsNaN(loss) {
		t.Errorf("a logit that is no number gives a loss of %g", loss)
	}
}

// TestGradFanIn differentiates a graph in which nodes are used several times,
// with Grad and with gorgonia.Grad, and wants the same derivative.
func TestGradFanIn(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	n, c := 5, 4
	data := [][]float32{randomData(rng, n*c, false), randomData(rng, c*c, false), randomData(rng, c, false), randomData(rng, c, false)}
	labels, ones := []float32{0, 1, 1, 0, 1}, []float32{1, 1, 1, 1, 1}
	type grad func(cost *gorgonia.Node, wrt ...*gorgonia.Node) (gorgonia.Nodes, error)
	differentiate := func(grad grad) (result [][]float32, others int) {
		g := gorgonia.NewGraph()
		x := float32Node(t, g, "x", data[0], n, c)
		w := float32Node(t, g, "w", data[1], c, c)
		b := float32Node(t, g, "b", data[2], c)
		v := float32Node(t, g, "v", data[3], c, 1)
		// x, w and b each occur in two layers, x a third time at the end.
		one := gorgonia.Must(CrossMatrix(x, x, w, b))
		two := gorgonia.Must(CrossMatrix(x, one, w, b))
		logits := gorgonia.Must(Linear(Tanh, gorgonia.Must(Sum(two, x)), v, nil))
		cost := gorgonia.Must(Loss(logits, float32Node(t, g, "y", labels, n), float32Node(t, g, "weights", ones, n)))
		grads, err := grad(cost, x, w, b, v)
		if err != nil {
			t.Fatal(err)
		}
		run(t, g)
		for _, node := range grads {
			result = append(result, values(node))
		}
		for _, node := range g.AllNodes() {
			if _, ours := Describe(node); !ours && node.Op() != nil {
				others++
			}
		}
		return result, others
	}
	ours, others := differentiate(Grad)
	theirs, _ := differentiate(gorgonia.Grad)
	if others != 1 {
		t.Errorf("the differentiated graph has %d ops that are not this package's, want the constant 1 alone", others)
	}
	for k := range ours {
		for i := range ours[k] {
			if d := math.Abs(float64(ours[k][i] - theirs[k][i])); d > 1e-6*(1+math.Abs(float64(theirs[k][i]))) {
				t.Errorf("operand %d[%d]: Grad gives %g, gorgonia.Grad %g", k, i, ours[k][i], theirs[k][i])
			}
		}
	}
}

// TestGradLeavesOut checks that derivatives nobody asked for are not computed
// and that a node the cost does not depend on has none.
func TestGradLeavesOut(t *testing.T) {
	g := gorgonia.NewGraph()
	x := float32Node(t, g, "x", make([]float32, 6), 2, 3)
	w := float32Node(t, g, "w", make([]float32, 3), 3, 1)
	other := float32Node(t, g, "other", make([]float32, 3), 3, 1)
	logits := gorgonia.Must(Linear(Identity, x, w, nil))
	cost := gorgonia.Must(Loss(logits, float32Node(t, g, "y", make([]float32, 2), 2), float32Node(t, g, "weights", make([]float32, 2), 2)))
	grads, err := Grad(cost, w, other)
	if err != nil {
		t.Fatal(err)
	}
	if grads[0] == nil || grads[1] != nil {
		t.Errorf("gradients are %v", grads)
	}
	products := 0
	for _, n := range g.AllNodes() {
		if _, ok := n.Op().(*matmul); ok {
			products++
		}
	}
	if products != 1 {
		t.Errorf("%d matrix products in the derivative, want the one for w", products)
	}
	if _, err := Grad(logits, w); err == nil {
		t.Error("Grad of a matrix gave no error")
	}
}

// TestShapesRejected checks that operands that do not fit are errors when the
// graph is built.
func TestShapesRejected(t *testing.T) {
	g := gorgonia.NewGraph()
	in := func(name string, shape ...int) *gorgonia.Node {
		return float32Node(t, g, name, make([]float32, product2(shape)), shape...)
	}
	x, y, v := in("x", 2, 3), in("y", 2, 4), in("v", 3)
	bags := Bags{
		Offsets: gorgonia.NewTensor(g, tensor.Int32, 1, gorgonia.WithShape(4), gorgonia.WithName("o")),
		Index:   gorgonia.NewTensor(g, tensor.Int32, 1, gorgonia.WithShape(1), gorgonia.WithName("i")),
		Weights: in("bw", 1),
	}
	for name, build := range map[string]func() (*gorgonia.Node, error){
		"linear":    func() (*gorgonia.Node, error) { return Linear(ReLU, x, y, nil) },
		"bias":      func() (*gorgonia.Node, error) { return Linear(ReLU, x, in("w", 3, 4), v) },
		"sum":       func() (*gorgonia.Node, error) { return Sum(x, y) },
		"concat":    func() (*gorgonia.Node, error) { return Concat(x, in("z", 3, 3)) },
		"columns":   func() (*gorgonia.Node, error) { return Columns(2, 0, 1, x) },
		"range":     func() (*gorgonia.Node, error) { return Columns(3, 2, 2, x) },
		"interact":  func() (*gorgonia.Node, error) { return Interact(2, x) },
		"one field": func() (*gorgonia.Node, error) { return Interact(3, x) },
		"fm":        func() (*gorgonia.Node, error) { return FactorizationMachine(2, x) },
		"cross":     func() (*gorgonia.Node, error) { return CrossMatrix(y, x, in("cw", 3, 3), v) },
		"norm":      func() (*gorgonia.Node, error) { return BatchNorm(y, v, v, in("stats", 2, 4)) },
		"loss":      func() (*gorgonia.Node, error) { return Loss(x, v, v) },
		"pool":      func() (*gorgonia.Node, error) { return BagPool([]Pooling{PoolSum, PoolSum}, x, bags) },
		"dropout":   func() (*gorgonia.Node, error) { return Dropout(1, 0, 0, x, x) },
	} {
		if node, err := build(); err == nil {
			t.Errorf("%s: no error, result %v", name, node.Shape())
		}
	}
}
