package model

import (
	"math"
	"slices"
	"testing"

	"aibox/trainer/ops"
	"aibox/trainer/optim"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// tape runs a model by Gorgonia's tape machine, op by op over whole mini-batches: the
// slow and obvious way, which the machine of the engine is held against.
type tape struct {
	*compiled
	machine gorgonia.VM
}

func newTape(t testing.TB, m *Model, n int, training bool) *tape {
	t.Helper()
	c, err := compile(m.spec, n, training, m.params, m.buffers)
	if err != nil {
		t.Fatal(err)
	}
	return &tape{c, gorgonia.NewTapeMachine(c.graph)}
}

// run executes the graph over in.
func (t *tape) run(in *Inputs) error {
	r := t.spec.RowDim()
	// Gorgonia has no empty tensors. If there are no rows, one row, index and weight
	// that no bag refers to take their place.
	rows, index, bagWeights := in.Rows, in.Index, in.BagWeights
	if len(rows) == 0 {
		rows = make([]float32, r)
	}
	if len(index) == 0 {
		index = []int32{0}
	}
	if len(bagWeights) == 0 {
		bagWeights = []float32{1}
	}
	t.rows.Set(rows, len(rows)/r, r)
	t.sets.offsets.Set(in.Offsets, len(in.Offsets))
	t.sets.index.Set(index, len(index))
	t.sets.weights.Set(bagWeights, len(bagWeights))
	if t.dense != nil {
		t.dense.Set(in.Dense, t.n, len(t.spec.Dense))
	}
	if t.training {
		t.labels.Set(in.Labels, t.n)
		weights := in.Weights
		if weights == nil {
			weights = slices.Repeat([]float32{1}, t.n)
		}
		t.weights.Set(weights, t.n)
		if t.step != nil {
			t.step.Set([]int64{in.Step}, 1)
		}
	}
	t.machine.Reset()
	return t.machine.RunAll()
}

func floats(node *gorgonia.Node) []float32 { return node.Value().(*tensor.Dense).Float32s() }

// sameBits reports the first element that differs. NaN is like NaN.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) && (got[i] == got[i] || w == w) {
			t.Errorf("%s: value %d of %d is %g, Gorgonia's machine has %g", what, i, len(want), got[i], w)
			return
		}
	}
}

// TestTape runs every model by the engine's machine and by Gorgonia's, in training and in
// inference, and wants all values and gradients to be the same bits: with few examples,
// with several tiles of which the last is small, and with several blocks.
func TestTape(t *testing.T) { eachPrecision(t, testTape) }

func testTape(t *testing.T) {
	for name, spec := range Examples() {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t, 83)
			for _, n := range []int{1, 3, 70, 600, 5000} {
				if n > 1000 && testing.Short() {
					continue
				}
				spec, rows := spec, n/2+3
				if n == 600 {
					spec, rows = wide(spec), 5 // which occur more often than kernel.SumPiece times
				}
				m := mustNew(t, spec)
				perturb(rng, m)
				in := randomInputs(rng, spec, n, rows)
				want := newTape(t, m, n, true)
				if err := want.run(in); err != nil {
					t.Fatal(err)
				}
				res, err := m.Train(in)
				if err != nil {
					t.Fatal(err)
				}
				if loss := ops.LossValue(want.loss); res.Loss != loss {
					t.Errorf("%d examples: the loss is %v, Gorgonia's machine has %v", n, res.Loss, loss)
				}
				sameBits(t, "logits", res.Logits, floats(want.logits))
				sameBits(t, "gradients of rows", res.RowGrads, floats(want.rowGrad))
				for i, p := range m.Params() {
					at := slices.IndexFunc(want.used, func(q *optim.Param) bool { return q.Name == p.Name })
					sameBits(t, "gradient of "+m.Params()[i].Name, p.Grad, floats(want.grads[at]))
				}

				infer := newTape(t, m, n, false)
				if err := infer.run(in); err != nil {
					t.Fatal(err)
				}
				logits, err := m.Infer(in)
				if err != nil {
					t.Fatal(err)
				}
				sameBits(t, "logits of inference", logits, floats(infer.logits))
			}
		})
	}
}
