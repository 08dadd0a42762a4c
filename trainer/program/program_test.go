package program_test

import (
	"fmt"
	"testing"

	"aibox/trainer/model"
	"aibox/trainer/ops"
	"aibox/trainer/program"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// networks are one of every kind, with all kinds of steps.
func networks(t *testing.T) map[string]*program.Network {
	t.Helper()
	all := map[string]*program.Network{}
	for _, kind := range model.Kinds() {
		for _, norm := range []bool{false, true} {
			s := model.Spec{Kind: kind, Fields: []string{"a", "b", "c"}, Dense: []string{"x", "y"}, EmbeddingDim: 4,
				BottomLayers: []int{20, 4}, HiddenLayers: []int{40, 24}, CrossLayers: 2, BatchNorm: norm, Dropout: 0.1}
			m, err := model.New(s)
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s norm=%v", kind, norm)] = m.Network()
		}
	}
	return all
}

// TestPlan checks for every program what executors rely on: a value is written before
// it is read, no step writes over what another one still needs, stages are as they
// say, and all steps are there that the graph has.
func TestPlan(t *testing.T) {
	for name, net := range networks(t) {
		for _, p := range []*program.Program{net.Train, net.Infer} {
			t.Run(fmt.Sprintf("%s training=%v", name, p.Training()), func(t *testing.T) { checkPlan(t, p) })
		}
	}
}

func checkPlan(t *testing.T, p *program.Program) {
	// holds is, for each column of a slot or of a buffer, the buffer whose data are there.
	type place struct{ buffer, column int }
	written := map[place]bool{}
	slots := make([]int, len(p.Slots)) // 1 + the buffer that a slot holds
	inner := func(v program.Value) bool { return p.Buffers[v.Buffer].Source == program.Inner }
	inTile := func(v program.Value) bool {
		b := p.Buffers[v.Buffer]
		return inner(v) && b.Rows == program.Examples && b.Scope == program.Tile
	}
	end := 0
	for n, stage := range p.Stages {
		if stage.First != end || stage.End <= stage.First {
			t.Errorf("stage %d is steps %d to %d, the one before ends at %d", n, stage.First, stage.End, end)
		}
		end = stage.End
		for i := stage.First; i < stage.End; i++ {
			s := &p.Steps[i]
			for _, v := range s.In {
				if b := p.Buffers[v.Buffer]; v.Column+v.Columns > b.Columns && b.Columns > 0 {
					t.Errorf("step %d reads columns %d to %d of %d", i, v.Column, v.Column+v.Columns, b.Columns)
				}
				if inTile(v) && slots[p.Buffers[v.Buffer].Slot] != v.Buffer+1 {
					t.Errorf("step %d (kind %d) reads buffer %d, whose slot holds another one", i, s.Kind, v.Buffer)
				}
				for c := v.Column; inner(v) && c < v.Column+v.Columns; c++ {
					if !written[place{v.Buffer, c}] {
						t.Fatalf("step %d (kind %d) reads column %d of buffer %d, which nothing has written", i, s.Kind, c, v.Buffer)
					}
				}
			}
			for _, v := range s.Out {
				if inTile(v) {
					b := p.Buffers[v.Buffer]
					if b.Stride > p.Slots[b.Slot] {
						t.Errorf("buffer %d of %d elements is in a slot of %d", v.Buffer, b.Stride, p.Slots[b.Slot])
					}
					slots[b.Slot] = v.Buffer + 1
					for _, in := range s.In {
						if inTile(in) && in.Buffer != v.Buffer && p.Buffers[in.Buffer].Slot == b.Slot {
							t.Errorf("step %d (kind %d) writes over its operand", i, s.Kind)
						}
					}
				}
				for c := v.Column; c < v.Column+v.Columns; c++ {
					if at := (place{v.Buffer, c}); inner(v) && written[at] {
						t.Errorf("step %d (kind %d) writes column %d of buffer %d, which was written before", i, s.Kind, c, v.Buffer)
					} else {
						written[at] = true
					}
				}
			}
		}
	}
	if end != len(p.Steps) {
		t.Errorf("stages have %d of %d steps", end, len(p.Steps))
	}
	if !p.Training() && len(p.Stages) != 1 {
		t.Errorf("inference has %d stages", len(p.Stages))
	}
}

// TestBagsFirst: the first step pools bags, also where the graph has it behind others, and nothing
// writes over its result before it is used.
func TestBagsFirst(t *testing.T) {
	g := gorgonia.NewGraph()
	node := func(n *gorgonia.Node, err error) *gorgonia.Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	input := func(name string, of tensor.Dtype, shape ...int) *gorgonia.Node {
		in, err := ops.NewInput(g, name, of, shape...)
		if err != nil {
			t.Fatal(err)
		}
		return in.Node
	}
	const n = 3
	dense, rows := input("dense", tensor.Float32, n, 2), input("rows", tensor.Float32, 5, 4)
	bags := ops.Bags{Offsets: input("offsets", tensor.Int32, n+1), Index: input("index", tensor.Int32, n), Weights: input("weights", tensor.Float32, 1)}
	w := []*gorgonia.Node{input("w0", tensor.Float32, 2, 20), input("w1", tensor.Float32, 20, 30), input("w2", tensor.Float32, 30, 4), input("w3", tensor.Float32, 8, 1)}
	x := dense
	for _, w := range w[:3] {
		x = node(ops.Linear(ops.ReLU, x, w, nil))
	}
	pooled := node(ops.BagPool([]ops.Pooling{ops.PoolSum}, rows, bags))
	logits := node(ops.Linear(ops.Identity, node(ops.Concat(x, pooled)), w[3], nil))
	p, err := program.Lower(&program.Graph{Dense: dense, Rows: rows, Bags: []*gorgonia.Node{bags.Offsets, bags.Index, bags.Weights}, Params: w, Logits: logits})
	if err != nil {
		t.Fatal(err)
	}
	all := networks(t)
	all["graph"] = &program.Network{Train: p, Infer: p}
	for name, net := range all {
		for _, p := range []*program.Program{net.Train, net.Infer} {
			if p.Steps[0].Kind != ops.KindBagPool {
				t.Errorf("%s: the first step is of kind %d", name, p.Steps[0].Kind)
			}
		}
	}
	checkPlan(t, p)
}

// TestTwoStages: without batch normalization, threads meet twice in a step of training.
func TestTwoStages(t *testing.T) {
	for name, net := range networks(t) {
		p := net.Train
		if norm := len(net.Norms) > 0; !norm && (len(p.Stages) != 2 || !p.Blocks) || norm && p.Blocks {
			t.Errorf("%s: %d stages, in blocks: %v", name, len(p.Stages), p.Blocks)
		}
	}
}

// TestFusion: layers compute the gradients of weights and biases in one step, and those
// of their input with the derivative below; concatenations of results cost nothing.
func TestFusion(t *testing.T) {
	count := map[ops.Kind]int{}
	two, derivatives := 0, 0
	for _, s := range networks(t)["dlrm norm=false"].Train.Steps {
		count[s.Kind]++
		if s.Kind == ops.KindMatMul && len(s.Out) == 2 {
			two++
		}
		if s.Kind == ops.KindMatMul && len(s.In) == 3 {
			derivatives++
		}
	}
	const layers = 5 // two at the bottom, two at the top, the output
	if count[ops.KindLinear] != layers || two != layers || count[ops.KindColumnSum] != 0 {
		t.Errorf("%d layers, %d with both gradients in one step, %d column sums", count[ops.KindLinear], two, count[ops.KindColumnSum])
	}
	if derivatives == 0 || count[ops.KindConcat] != 0 {
		t.Errorf("%d derivatives in products, %d concatenations", derivatives, count[ops.KindConcat])
	}
	// The bottom network's result is part of two concatenations: it is copied into one.
	if count[program.KindCopy] != 1 {
		t.Errorf("%d copies", count[program.KindCopy])
	}
}
