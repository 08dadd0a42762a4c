package cuda_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TestLikeHost: every model has, after some steps, the losses, logits, parameters and rows that the
// engine of the host's processors gives it, up to rounding errors, on one device and on several.
func TestLikeHost(t *testing.T) {
	seed := testseed.Of(t)
	for name, spec := range model.Examples() {
		s := setup{spec: spec, dense: adam, seed: seed, batches: 8, examples: 37}
		t.Run(name, func(t *testing.T) {
			host := onHost(t, s)
			wantLosses, wantLogits := host.train(t, 0, s.batches)
			host.end(t)
			want := host.values()
			wantInferred := host.infer(t)
			for _, n := range numbers() {
				t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
					b := onDevices(t, s, n, seed+uint64(n))
					losses, logits := b.train(t, 0, s.batches)
					b.end(t)
					for i := range losses {
						near(t, "loss", []float32{float32(losses[i])}, []float32{float32(wantLosses[i])}, 1e-4)
						near(t, "logits", logits[i], wantLogits[i], 1e-4)
					}
					allNear(t, b.values(), want, 1e-4)
					for i, got := range b.stats() {
						if got != host.stats()[i] {
							t.Fatalf("statistics of row %d: %+v, want %+v", i, got, host.stats()[i])
						}
					}
					for i, got := range b.infer(t) {
						near(t, "inferred logits", got, wantInferred[i], 1e-4)
					}
				})
			}
		})
	}
}

// numbers are the numbers of devices with which tests of all models try each of them.
func numbers() []int {
	if testing.Short() {
		return []int{1, 3}
	}
	return []int{1, 2, 3, 8}
}

// deep has a layer of everything but what needs dense features alone.
func deep(norm bool) model.Spec {
	s := model.Spec{
		Kind: "deepfm", Fields: []string{"a", "b", "c"}, Dense: []string{"x", "y"}, EmbeddingDim: 4, HiddenLayers: []int{24, 12},
		Activation: "relu", BatchNorm: norm, Seed: 3,
	}
	if norm {
		s.Dropout = 0.2
	}
	return s
}

// TestOptimizers: every optimizer of parameters, with and without averages and optimizers of single
// parameters. What lies between parameters, which is updated with them, stays 0.
func TestOptimizers(t *testing.T) {
	seed := testseed.Of(t)
	kinds := map[string]optim.DenseConfig{
		"sgd":      {Kind: "sgd", LearningRate: 0.05, L2: 0.01},
		"momentum": {Kind: "momentum", LearningRate: 0.05, Momentum: 0.9},
		"adagrad":  {Kind: "adagrad", LearningRate: 0.05, Epsilon: 1e-8, InitialAccumulator: 0.1},
		"adam":     adam,
		"adamw":    {Kind: "adamw", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.1},
		"averages": {Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Averaging: 0.7},
		"own":      {Kind: "momentum", LearningRate: 0.05, Momentum: 0.9},
		"began":    {Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Averaging: 0.9},
	}
	ftrl := optim.RowConfig{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1, FTRLL1: 0.001}
	adagrad := optim.RowConfig{Kind: "adagrad", LearningRate: 0.1, Epsilon: 1e-8, InitialAccumulator: 0.1, L2: 0.01}
	for name, config := range kinds {
		t.Run(name, func(t *testing.T) {
			s := setup{spec: deep(true), dense: config, seed: seed, batches: 15, examples: 41} // until graphs run again
			switch params := onHost(t, s).model.Params(); name {
			case "averages":
				s.own = []optim.Own{{Param: params[0].Name, Config: ftrl}}
			case "own":
				for i, p := range params[1:] {
					s.own = append(s.own, optim.Own{Param: p.Name, Config: []optim.RowConfig{ftrl, adagrad}[i%2]})
				}
			case "began":
				s.own = []optim.Own{{Param: params[0].Name, Config: optim.RowConfig{Kind: "adam", LearningRate: 0.02, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-8}}}
				s.began = func(param, value int) int64 { return -int64(param % 3 * min(value/10, 2)) } // some parameters are divided
			}
			host := onHost(t, s)
			host.train(t, 0, s.batches)
			host.end(t)
			want := host.values()
			wantLogits := host.infer(t)
			for n := 1; n <= 2; n++ {
				b := onDevices(t, s, n, seed)
				b.train(t, 0, s.batches)
				b.end(t)
				allNear(t, b.values(), want, 1e-4)
				for i, got := range b.infer(t) {
					near(t, "inferred logits", got, wantLogits[i], 1e-4)
				}
				between, err := b.engine.(*cuda.Engine).BetweenParameters()
				if err != nil || len(between) == 0 {
					t.Fatalf("%d numbers between parameters, %v", len(between), err)
				}
				for _, x := range between {
					if x != 0 {
						t.Fatalf("%v lies between parameters", x)
					}
				}
			}
		})
	}
}

// TestPrecisions: products in bf16 differ from those of the host in the same precision by rounding
// errors, among them, where devices do a layer in one operation, those of biases; and those in tf32
// from float32 by what tf32 leaves out.
func TestPrecisions(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		devices, host engine.Precision
		tolerance     float64
	}{{engine.BF16, engine.BF16, 1e-3}, {engine.TF32, engine.Float32, 0.1}} {
		t.Run(c.devices.String(), func(t *testing.T) {
			s := setup{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, precision: c.host, seed: seed, batches: 2, examples: 50}
			host := onHost(t, s)
			host.train(t, 0, s.batches)
			host.end(t)
			s.precision = engine.Float32
			exact := onDevices(t, s, 1, seed)
			exact.train(t, 0, s.batches)
			exact.end(t)
			s.precision = c.devices
			for n := 1; n <= 2; n++ {
				b := onDevices(t, s, n, seed)
				b.train(t, 0, s.batches)
				b.end(t)
				got := b.values()
				allNear(t, got, host.values(), c.tolerance)
				if n == 1 && slices.Equal(got["rows"], exact.values()["rows"]) {
					t.Error("the products are those of float32")
				}
			}
		})
	}
}

// TestOddWidths: layers of which neither inputs nor outputs are multiples of 8 have the results of
// the host. Products read nothing behind their weights but zeros.
func TestOddWidths(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		devices, host engine.Precision
	}{{engine.BF16, engine.BF16}, {engine.TF32, engine.Float32}} {
		for n := 1; n <= 2; n++ {
			s := setup{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, precision: c.host, seed: seed, batches: 4, examples: 21}
			s.spec.HiddenLayers = []int{13, 7, 3}
			host := onHost(t, s)
			host.train(t, 0, s.batches)
			host.end(t)
			s.precision = c.devices
			b := onDevices(t, s, n, seed)
			b.train(t, 0, s.batches)
			b.end(t)
			allNear(t, b.values(), host.values(), 0.1)
			b.infer(t)
		}
	}
}

// TestRows: 16-bit values, decay and admission are those of the host.
func TestRows(t *testing.T) {
	seed := testseed.Of(t)
	for _, format := range []sparsetable.ValueFormat{sparsetable.Float32, sparsetable.BFloat16} {
		s := setup{spec: deep(false), dense: adam, format: format, decay: 0.5, seed: seed, batches: 4, examples: 30}
		host, b := onHost(t, s), onDevices(t, s, 2, seed)
		for _, x := range []*bench{host, b} {
			x.train(t, 0, s.batches)
			x.end(t)
		}
		tolerance := 1e-4
		if format != sparsetable.Float32 {
			tolerance = 1e-2 // a number may be rounded to the other side
		}
		near(t, "rows", b.values()["rows"], host.values()["rows"], tolerance)
	}
}

// TestBlocks: mini-batches that are sent in several blocks, which are not the shares of the
// devices, have the results of the host.
func TestBlocks(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, seed: seed, batches: 3, examples: 2500}
	host := onHost(t, s)
	_, want := host.train(t, 0, 1)
	host.end(t)
	inferred := host.infer(t)
	for n := 1; n <= 3; n++ {
		b := onDevices(t, s, n, seed)
		_, got := b.train(t, 0, 1)
		b.end(t)
		near(t, "logits", got[0], want[0], 1e-4)
		for i, logits := range b.infer(t) {
			near(t, "logits of inference", logits, inferred[i], 1e-4)
		}
	}
}

// TestSameBits: a job on the same number of devices gives the same bits, in whatever order
// operations run.
func TestSameBits(t *testing.T) {
	seed := testseed.Of(t)
	for n := 1; n <= 3; n++ {
		s := setup{spec: deep(true), dense: adam, seed: seed, batches: 6, examples: 33}
		var want map[string][]float32
		for try := range uint64(4) {
			b := onDevices(t, s, n, seed+try)
			b.train(t, 0, s.batches)
			b.end(t)
			if want == nil {
				want = b.values()
				continue
			}
			sameBits(t, b.values(), want)
		}
	}
}

// TestExport: a run that is exported, and goes on with another engine, gives the bits of one that
// is not; so does inference.
func TestExport(t *testing.T) {
	seed := testseed.Of(t)
	for n := 1; n <= 3; n++ {
		for _, precision := range []engine.Precision{engine.Float32, engine.BF16} {
			s := setup{spec: deep(true), dense: adam, precision: precision, seed: seed, batches: 6, examples: 33}
			s.dense.Averaging = 0.9
			whole, cut := onDevices(t, s, n, seed), onDevices(t, s, n, seed)
			whole.train(t, 0, s.batches)
			whole.end(t)
			cut.train(t, 0, 2)
			cut.end(t)
			another := func() {
				t.Helper()
				p := fusing(n, seed+1, seed) // as onDevices
				other, err := cuda.New(cut.config, &cut.state, cuda.Options{Platform: p, Devices: devices(n)})
				if err != nil {
					t.Fatal(err)
				}
				cut.engine = other
				t.Cleanup(func() {
					if err := errors.Join(other.Close(), p.Err()); err != nil {
						t.Error(err)
					}
				})
			}
			another()
			cut.begin(t)
			cut.train(t, 2, 4)
			cut.end(t) // and once more with the same engine, which imports nothing
			cut.begin(t)
			cut.train(t, 4, s.batches)
			cut.end(t)
			sameBits(t, cut.values(), whole.values())
			another()
			if got, want := fmt.Sprint(cut.infer(t)), fmt.Sprint(whole.infer(t)); got != want {
				t.Errorf("inferred logits %s, want %s", got, want)
			}
		}
	}
}

// TestMixed: training and inference may take turns; results come in order, those of inference late.
func TestMixed(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(true), dense: adam, seed: seed, batches: 12, examples: 20}
	host := onHost(t, s)
	benches := []*bench{host}
	for n := 1; n <= 3; n++ {
		benches = append(benches, onDevices(t, s, n, seed+uint64(n)))
	}
	logits := make([][][]float32, len(benches))
	for x, b := range benches {
		late := false
		for i := range s.batches {
			do := b.engine.Infer
			if i%4 == 0 {
				do = b.engine.Train
			}
			if err := do(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
				if r.Batch != &b.pass.Batches[len(logits[x])] {
					t.Error("results are out of order")
				}
				logits[x] = append(logits[x], slices.Clone(r.Logits))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			late = late || len(logits[x]) <= i
		}
		if late == (b == host) {
			t.Errorf("bench %d: late results: %v", x, late)
		}
		b.end(t)
		if len(logits[x]) != s.batches {
			t.Fatalf("%d results", len(logits[x]))
		}
		for i := range logits[x] {
			near(t, fmt.Sprint("logits ", i), logits[x][i], logits[0][i], 1e-4)
		}
	}
}
