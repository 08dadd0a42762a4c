package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TestForecast: what an engine takes is what was forecast, to the byte.
func TestForecast(t *testing.T) {
	seed := testseed.Of(t)
	setups := map[string]setup{
		"momentum": {spec: deep(true), dense: optim.DenseConfig{Kind: "momentum", LearningRate: 0.05, Momentum: 0.9}},
		"sgd":      {spec: deep(true), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.05}},
		"averages": {spec: deep(false), dense: optim.DenseConfig{Kind: "adagrad", LearningRate: 0.05, Epsilon: 1e-8, Averaging: 0.7}},
		"bf16":     {spec: deep(false), dense: adam, precision: engine.BF16},
		"tf32":     {spec: deep(false), dense: adam, precision: engine.TF32},
		"full":     {spec: deep(false), dense: adam, examples: 300},
	}
	own := deep(false)
	own.Kind, own.HiddenLayers = "lr", nil
	setups["ftrl"] = setup{spec: own, dense: adam, own: []optim.Own{{Param: model.LinearWeight, Config: optim.RowConfig{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1}}}}
	setups["rows on devices"] = setup{spec: deep(true), dense: adam, held: true}
	for name, spec := range model.Examples() {
		setups["model "+name] = setup{spec: spec, dense: adam}
	}
	for name, s := range setups {
		s.seed, s.batches, s.examples = seed, 3, max(s.examples, 37)
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s on %d", name, n), func(t *testing.T) {
				b := newBench(t, s)
				want := cuda.Forecast(b.config, &b.state, n, s.examples, s.held)
				b = onDevices(t, s, n, seed)
				b.train(t, 0, s.batches)
				b.end(t)
				b.infer(t)
				e := b.engine.(*cuda.Engine)
				if got := e.NetworkBytes(); got != want.Device() {
					t.Errorf("%d bytes of a device, forecast: %d, %+v", got, want.Device(), want)
				}
				if got := e.PinnedBytes(); got != want.Pinned {
					t.Errorf("%d bytes of pinned memory, forecast: %d", got, want.Pinned)
				}
			})
		}
	}
}
