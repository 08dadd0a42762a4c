package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TestCombinations checks that every optimizer of parameters with every one of rows, in every
// precision, with rows on the host and on the devices, on each number of devices, makes the same
// model as the processors of the host. Each model occurs with each of these optimizers, precisions,
// places and numbers. The last mini-batch has fewer examples than there are devices.
func TestCombinations(t *testing.T) {
	seed := testseed.Of(t)
	specs := model.Examples()
	// With these sums of squares and epsilons, a gradient that is nothing but rounding makes no
	// step of full size.
	ofAll := optim.RowConfig{LearningRate: 0.02, Beta1: 0.9, Beta2: 0.999, Epsilon: 0.01, InitialAccumulator: 0.1, FTRLBeta: 1, FTRLL1: 0.001}
	dense := optim.DenseConfig{LearningRate: 0.02, Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Epsilon: 0.01, InitialAccumulator: 0.1}
	for p, precision := range []struct {
		devices, host engine.Precision
		tolerance     float64
	}{{engine.Float32, engine.Float32, 1e-4}, {engine.BF16, engine.BF16, 0.05}, {engine.TF32, engine.Float32, 0.05}} {
		for d, kind := range []string{"sgd", "momentum", "adagrad", "adam", "adamw"} {
			for r, ofRows := range []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"} {
				if testing.Short() && (p+d+r)%3 > 0 {
					continue
				}
				kinds, rows := model.Kinds(), ofAll
				rows.Kind = ofRows
				s := setup{
					spec: specs[kinds[(4*p+5*d+r)%len(kinds)]], dense: dense, rows: &rows, precision: precision.host, admitted: r%2 == 0,
					seed: seed + uint64(5*d+r), batches: 3, examples: 15,
				}
				s.dense.Kind = kind
				t.Run(fmt.Sprintf("%s/%v/%s, rows %s", s.spec.Kind, precision.devices, kind, ofRows), func(t *testing.T) {
					host := onHost(t, s)
					host.train(t, 0, s.batches)
					host.end(t)
					want, s := host.values(), s
					s.precision = precision.devices
					for _, n := range numbers() {
						for _, s.held = range []bool{false, true} {
							b := onDevices(t, s, n, seed+uint64(n))
							b.train(t, 0, s.batches)
							b.end(t)
							allNear(t, b.values(), want, precision.tolerance)
						}
					}
				})
			}
		}
	}
}
