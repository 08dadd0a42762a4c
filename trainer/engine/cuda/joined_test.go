package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// small is a small DLRM, whose vectors have as many numbers as its bottom network has units.
func small(activation string, norm bool) model.Spec {
	return model.Spec{
		Kind: model.KindDLRM, Fields: []string{"a", "b", "c", "d"}, Dense: []string{"x", "y", "z"}, Activation: activation, BatchNorm: norm,
		EmbeddingDim: 6, BottomLayers: []int{16, 6}, HiddenLayers: []int{16, 12}, Seed: 3,
	}
}

// TestJoinedSteps: steps that the operation of another one does have no operation of their own, where that can be, and the model becomes that
// of the processors of the host.
func TestJoinedSteps(t *testing.T) {
	seed := testseed.Of(t)
	type spec = model.Spec
	for name, c := range map[string]struct {
		spec   spec
		counts map[string]int // of operations
	}{
		"relu":       {small("relu", false), map[string]int{"interact_grad_first": 1}},
		"leaky_relu": {small("leaky_relu", false), map[string]int{"interact_grad_first": 1}},
		"tanh":       {small("tanh", false), map[string]int{"interact_grad_first": 1}},
		"sigmoid":    {small("sigmoid", false), map[string]int{"interact_grad_first": 1}},
		"identity":   {small("identity", false), map[string]int{"interact_grad_first": 1}},
		"batch norm": {small("relu", true), map[string]int{"interact_grad_first": 1}},
		"no bottom":  {func() spec { s := small("relu", false); s.Dense = nil; return s }(), map[string]int{"interact_grad": 1}},
	} {
		for precision, tolerance := range map[engine.Precision]float64{engine.Float32: 1e-4, engine.BF16: 1e-2} {
			t.Run(fmt.Sprint(name, "/", precision), func(t *testing.T) {
				s := setup{
					spec: c.spec, dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.05}, rows: &optim.RowConfig{Kind: "sgd", LearningRate: 0.1},
					seed: seed, batches: 3, examples: 37, admitted: true, precision: precision,
				}
				got, _ := operations(t, s)
				for _, operation := range []string{"interact_grad", "interact_grad_first", "activate_grad", "sum"} {
					if got[operation] != c.counts[operation] {
						t.Errorf("%d operations %s, want %d: %v", got[operation], operation, c.counts[operation], got)
					}
				}
				host := onHost(t, s)
				host.train(t, 0, s.batches)
				host.end(t)
				for n := 1; n <= 2; n++ {
					b := onDevices(t, s, n, seed+uint64(n))
					b.train(t, 0, s.batches)
					b.end(t)
					allNear(t, b.values(), host.values(), tolerance)
				}
			})
		}
	}
}
