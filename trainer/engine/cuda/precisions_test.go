package cuda_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TestPrecisionsOfModels: in the other precisions, too, every model becomes that of the processors
// of the host, up to roundings, and with rows on the devices the same bits as with rows on the
// host. Of the numbers of devices, each model has one with rows on the devices.
func TestPrecisionsOfModels(t *testing.T) {
	seed := testseed.Of(t)
	specs := model.Examples()
	for _, c := range []struct {
		devices, host engine.Precision
		tolerance     float64
	}{{engine.BF16, engine.BF16, 3e-3}, {engine.TF32, engine.Float32, 3e-2}} {
		for i, name := range slices.Sorted(maps.Keys(specs)) {
			t.Run(fmt.Sprintf("%v/%s", c.devices, name), func(t *testing.T) {
				s := setup{
					spec: specs[name], dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.05}, rows: &optim.RowConfig{Kind: "sgd", LearningRate: 0.1},
					seed: seed, batches: 4, examples: 37, precision: c.host,
				}
				host := onHost(t, s)
				host.train(t, 0, s.batches)
				host.end(t)
				s.precision = c.devices
				for _, n := range numbers() {
					b := onDevices(t, s, n, seed+uint64(n))
					b.train(t, 0, s.batches)
					b.end(t)
					allNear(t, b.values(), host.values(), c.tolerance)
				}
				likeOnHost(t, s, numbers()[(uint64(i)+seed)%uint64(len(numbers()))])
			})
		}
	}
}
