package ops

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
)

// chain is a network of layers of one width, for inference or differentiated.
func chain(t *testing.T, layers, width int, train bool) (g *gorgonia.ExprGraph, results []*gorgonia.Node) {
	t.Helper()
	g = gorgonia.NewGraph()
	ramp := func(n int) []float32 {
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(math.Sin(float64(3 * i)))
		}
		return data
	}
	const n = 3
	x := float32Node(t, g, "x", ramp(n*width), n, width)
	var weights []*gorgonia.Node
	for l := range layers {
		w := float32Node(t, g, fmt.Sprintf("w%d", l), ramp(width*width), width, width)
		weights = append(weights, w)
		x = gorgonia.Must(Linear(Tanh, x, w, nil))
	}
	logits := gorgonia.Must(RowSum(x))
	results = append(results, logits)
	if train {
		y := float32Node(t, g, "y", make([]float32, n), n)
		cost := gorgonia.Must(Loss(logits, y, float32Node(t, g, "weights", []float32{1, 1, 1}, n)))
		grads, err := Grad(cost, weights...)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, grads...)
	}
	return g, results
}

// TestShare wants the same results with shared memory, and less of it.
func TestShare(t *testing.T) {
	const width = 5
	for _, train := range []bool{false, true} {
		var need []int
		for _, layers := range []int{4, 12} {
			g, results := chain(t, layers, width, train)
			run(t, g)
			shared, sharedResults := chain(t, layers, width, train)
			bytes, err := Share(shared, sharedResults...)
			if err != nil {
				t.Fatal(err)
			}
			need = append(need, bytes)
			run(t, shared)
			all := 0
			for _, node := range shared.AllNodes() {
				if node.Op() != nil && node.Op().Arity() > 0 {
					all += 4 * node.Shape().TotalSize()
				}
			}
			if train && bytes >= all*3/4 {
				t.Errorf("%d layers: %d bytes shared, %d without", layers, bytes, all)
			}
			for i, node := range results {
				want, got := values(node), values(sharedResults[i])
				for j := range want {
					if math.Float32bits(want[j]) != math.Float32bits(got[j]) {
						t.Fatalf("%d layers, train %v: result %d[%d] is %g, %g without sharing", layers, train, i, j, got[j], want[j])
					}
				}
			}
		}
		if !train && need[0] != need[1] {
			t.Errorf("inference needs %d bytes for 4 layers, %d for 12", need[0], need[1])
		}
	}
}

// TestMemoryPlan checks the choice among unused slots.
func TestMemoryPlan(t *testing.T) {
	var p memoryPlan
	a, b, c := p.take(10), p.take(30), p.take(20)
	for _, s := range []int{a, b, c} {
		p.release(s)
	}
	if s := p.take(15); s != c {
		t.Errorf("15 values went to slot %d of %v, want %d", s, p.sizes, c)
	}
	if s := p.take(40); s != b || p.sizes[b] != 40 {
		t.Errorf("40 values went to slot %d of %v, want %d, grown", s, p.sizes, b)
	}
	if s := p.take(1); s != a {
		t.Errorf("1 value went to slot %d, want %d", s, a)
	}
	if s := p.take(1); s != 3 {
		t.Errorf("with no slot unused, slot %d", s)
	}
}
