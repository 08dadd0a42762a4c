package cuda_test

import (
	"fmt"
	"strings"
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

// TestJoinedSteps checks that steps that are part of another operation have no operation of their
// own where that is possible, and that the model is that of the processors of the host.
func TestJoinedSteps(t *testing.T) {
	seed := testseed.Of(t)
	dropping, without, stacked := small("relu", false), small("relu", false), small("relu", false)
	dropping.Dropout, without.Dense = 0.3, nil
	stacked.Kind, stacked.Structure, stacked.CrossLayers = model.KindDCN, model.Stacked, 1
	for name, c := range map[string]struct {
		spec model.Spec
		want string // operations that do more, or are left alone
	}{
		"relu":       {small("relu", false), "interact_grad_first output_layer output_sums"},
		"leaky_relu": {small("leaky_relu", false), "interact_grad_first output_layer output_sums"},
		"tanh":       {small("tanh", false), "interact_grad_first output_layer output_sums"},
		"sigmoid":    {small("sigmoid", false), "interact_grad_first output_layer output_sums"},
		"batch norm": {small("relu", true), "interact_grad_first output_layer output_sums"},
		// There is no derivative of what enters the last layer; nor is there where elements are
		// dropped between.
		"identity":  {small("identity", false), "column_dots interact_grad_first loss_grad loss_terms"},
		"dropout":   {dropping, "activate_grad column_dots interact_grad_first loss_grad loss_terms"},
		"no bottom": {without, "interact_grad output_layer output_sums"},
		"stacked":   {stacked, "column_dots output_layer output_sums sum"},
		// The logit is a sum.
		"deepfm": {deep(false), "column_dots derive_outer loss_grad loss_terms sum"},
	} {
		for precision, tolerance := range map[engine.Precision]float64{engine.Float32: 1e-4, engine.BF16: 1e-2} {
			t.Run(fmt.Sprint(name, "/", precision), func(t *testing.T) {
				s := setup{
					spec: c.spec, dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.05}, rows: &optim.RowConfig{Kind: "sgd", LearningRate: 0.1},
					seed: seed, batches: 3, examples: 37, admitted: true, precision: precision,
				}
				counts, _ := operations(t, s)
				var got []string
				for _, operation := range []string{
					"activate_grad", "column_dots", "derive_outer", "interact_grad", "interact_grad_first", "loss_grad", "loss_terms", "output_layer", "output_sums", "sum",
				} {
					if counts[operation]+counts[operation+"_bf16"] > 0 {
						got = append(got, operation)
					}
				}
				if got := strings.Join(got, " "); got != c.want {
					t.Errorf("operations %s, want %s", got, c.want)
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
