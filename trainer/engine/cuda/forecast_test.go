package cuda_test

import (
	"errors"
	"fmt"
	"testing"

	"aibox/gpu"
	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// inUse is how much memory of a physical device is in use.
func inUse(t *testing.T, p gpu.Platform, number int) int64 {
	t.Helper()
	d, err := p.Open(number)
	if err != nil {
		t.Fatal(err)
	}
	free, total, err := d.FreeMemory()
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return total - free
}

// TestForecast checks that an engine takes exactly as many bytes as were forecast.
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
				p := platform(n, seed)
				want := cuda.Forecast(b.config, &b.state, n, s.examples, s.held, p.Devices()[0].ProductBytes)
				b = on(t, s, p)
				b.train(t, 0, s.batches)
				b.end(t)
				b.infer(t)
				e := b.engine.(*cuda.Engine)
				if got := e.NetworkBytes(); got != want.Device() {
					t.Errorf("%d bytes of a device, forecast: %d, %+v", got, want.Device(), want)
				}
				for number := range n {
					if got := inUse(t, p, number); !s.held && got != want.Device() {
						t.Errorf("%d bytes of device %d are used, forecast: %d, %+v", got, number, want.Device(), want)
					}
				}
				if layers := s.spec.Kind != "lr" && s.spec.Kind != "fm"; (want.Products > 0) != (layers || len(s.spec.Dense) > 0) {
					t.Errorf("products take %d bytes", want.Products)
				}
				if got := e.PinnedBytes(); got != want.Pinned {
					t.Errorf("%d bytes of pinned memory, forecast: %d", got, want.Pinned)
				}
			})
		}
	}
}

// TestRowLimitBesideProducts checks that rows of passes get all memory that matrix products leave,
// also before the first product.
func TestRowLimitBesideProducts(t *testing.T) {
	seed := testseed.Of(t)
	const bytes, products = 4 << 20, 1 << 20
	fit := func(bytes, products int64) int64 {
		b := on(t, setup{spec: deep(false), dense: adam, held: true, seed: seed, batches: 1, examples: 30}, multiplying(2, bytes, products, seed))
		limit, err := b.engine.(*cuda.Engine).RowLimit(30)
		if err != nil {
			t.Fatal(err)
		}
		return limit.Rows(b.pass.Batches)
	}
	all, left := fit(bytes, 0), fit(bytes, products)
	if want := fit(bytes-products, 0); left != want || left >= all || left < 100 {
		t.Errorf("%d rows fit beside products, %d without them, %d in as much memory", left, all, want)
	}
}
