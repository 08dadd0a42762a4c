package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
)

// run updates one row with random gradients and calls check after each step.
func run(t *testing.T, cfg RowConfig, values []float32, steps int, scale func(int) float32, check func(step int, grad, values []float32)) {
	t.Helper()
	r, err := NewRows(cfg, len(values))
	if err != nil {
		t.Fatal(err)
	}
	state := make([]float32, r.StateDim())
	r.Init(values, state)
	rng := rand.New(rand.NewPCG(3, 4))
	grad := make([]float32, len(values))
	for step := 1; step <= steps; step++ {
		for i := range grad {
			grad[i] = float32(rng.NormFloat64())
		}
		kept := append([]float32(nil), grad...)
		update(r, int64(step), scale(step), values, state, grad)
		for i := range grad {
			if grad[i] != kept[i] {
				t.Fatal("Update changed the gradient")
			}
		}
		check(step, grad, values)
	}
}

func one(int) float32 { return 1 }

func halved(step int) float32 { return 1 / float32(1+step/10) }

func TestRowsAgainstDenseReference(t *testing.T) {
	for _, kind := range []string{"sgd", "adagrad"} {
		cfg := RowConfig{Kind: kind, LearningRate: 0.1, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01}
		ref := DenseConfig{Kind: kind, LearningRate: 0.1, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01}
		want := []float64{0.5, -1, 0}
		states := make([]refState, 3)
		run(t, cfg, []float32{0.5, -1, 0}, 50, halved, func(step int, grad, values []float32) {
			for i := range values {
				want[i] = refDense(ref, step, float64(halved(step)), want[i], float64(grad[i]), &states[i])
				if !close32(values[i], want[i]) {
					t.Fatalf("%s: step %d, value %d: %v, want %v", kind, step, i, values[i], want[i])
				}
			}
		})
	}
}

func TestRowwiseAdagrad(t *testing.T) {
	cfg := RowConfig{Kind: "rowwise_adagrad", LearningRate: 0.1, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01}
	want := []float64{0.5, -1, 0, 2}
	sum := 0.2
	run(t, cfg, []float32{0.5, -1, 0, 2}, 50, one, func(step int, grad, values []float32) {
		mean := 0.0
		for i := range want {
			g := float64(grad[i]) + 0.01*want[i]
			mean += g * g / 4
		}
		sum += mean
		for i := range want {
			want[i] -= 0.1 * (float64(grad[i]) + 0.01*want[i]) / (math.Sqrt(sum) + 1e-3)
			if !close32(values[i], want[i]) {
				t.Fatalf("step %d, value %d: %v, want %v", step, i, values[i], want[i])
			}
		}
	})
}

func TestLazyAdam(t *testing.T) {
	cfg := RowConfig{Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-4, L2: 0.01}
	want := []float64{0.5, -1, 0}
	states := make([]refState, 3)
	run(t, cfg, []float32{0.5, -1, 0}, 50, halved, func(step int, grad, values []float32) {
		for i := range values {
			want[i] = refSparseAdam(cfg, step, float64(halved(step)), want[i], float64(grad[i]), &states[i])
			if !close32(values[i], want[i]) {
				t.Fatalf("step %d, value %d: %v, want %v", step, i, values[i], want[i])
			}
		}
	})
}

// TestLazyAdamUsesTheGlobalStep: a row first seen in step 1000 takes hardly any
// bias correction.
func TestLazyAdamUsesTheGlobalStep(t *testing.T) {
	r, err := NewRows(RowConfig{Kind: "adam", LearningRate: 1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-12}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, state := []float32{0}, make([]float32, 2)
	update(r, 1000, 1, w, state, []float32{2})
	// m = 0.2, v = 0.04: w -= 0.2/0.2, but for the corrections near 1.
	if want := -1.0; math.Abs(float64(w[0])-want) > 1e-3 {
		t.Errorf("%v, want %v", w[0], want)
	}
}

var ftrlConfigs = []RowConfig{
	{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1},
	{Kind: "ftrl", LearningRate: 0.05, FTRLBeta: 1, FTRLL1: 0.7, FTRLL2: 0.3},
	{Kind: "ftrl", LearningRate: 0.2, FTRLL1: 2, InitialAccumulator: 0.1},
}

func TestFTRLAgainstPaper(t *testing.T) {
	for _, cfg := range ftrlConfigs {
		start := []float32{0, 0.25, -0.5}
		refs := make([]refFTRL, len(start))
		for i, w := range start {
			// Where the paper's z must be for the row to begin at w.
			n := cfg.InitialAccumulator
			refs[i] = refFTRL{n: n}
			if w != 0 {
				d := (cfg.FTRLBeta+math.Sqrt(n))/cfg.LearningRate + cfg.FTRLL2
				refs[i].z = -float64(w)*d - math.Copysign(cfg.FTRLL1, float64(w))
			}
		}
		zeros := 0
		run(t, cfg, start, 200, one, func(step int, grad, values []float32) {
			for i := range values {
				refs[i].update(cfg, float64(grad[i]))
				want := refs[i].weight(cfg)
				if want == 0 {
					zeros++
				}
				if math.Abs(float64(values[i])-want) > 2e-4*(1+math.Abs(want)) {
					t.Fatalf("%+v: step %d, value %d: %v, want %v", cfg, step, i, values[i], want)
				}
			}
		})
		if cfg.FTRLL1 >= 2 && zeros == 0 {
			t.Errorf("%+v: no weight ever was 0", cfg)
		}
	}
}

// TestFTRLFollowsSchedule: without regularization FTRL is a gradient step of
// rate alpha/(beta+sqrt(n)), also when alpha has just changed.
func TestFTRLFollowsSchedule(t *testing.T) {
	cfg := RowConfig{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1}
	scale := func(step int) float32 { return []float32{0.01, 1, 0.1, 0}[step%4] }
	want, n := []float64{0.5, -1}, []float64{0, 0}
	run(t, cfg, []float32{0.5, -1}, 40, scale, func(step int, grad, values []float32) {
		for i := range values {
			if s := float64(scale(step)); s > 0 {
				g := float64(grad[i])
				n[i] += g * g
				want[i] -= 0.1 * s / (1 + math.Sqrt(n[i])) * g
			}
			if math.Abs(float64(values[i])-want[i]) > 1e-4 {
				t.Fatalf("step %d, value %d: %v, want %v", step, i, values[i], want[i])
			}
		}
	})
}

func TestStateDimAndInit(t *testing.T) {
	for kind, want := range map[string]int{"sgd": 0, "adagrad": 3, "rowwise_adagrad": 1, "adam": 6, "ftrl": 6} {
		r, err := NewRows(RowConfig{Kind: kind, LearningRate: 0.1, Epsilon: 1e-8, FTRLBeta: 1, InitialAccumulator: 0.5}, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.StateDim(); got != want {
			t.Errorf("%s: %d state words, want %d", kind, got, want)
		}
		state := make([]float32, want)
		r.Init(make([]float32, 3), state)
		if kind == "rowwise_adagrad" && state[0] != 0.5 || kind == "ftrl" && (state[2] != 0 || state[3] != 0.5) || kind == "adagrad" && state[2] != 0.5 {
			t.Errorf("%s: initial state %v", kind, state)
		}
	}
}

func TestNewRowsRejects(t *testing.T) {
	for _, cfg := range []RowConfig{
		{},
		{Kind: "momentum", LearningRate: 1},
		{Kind: "sgd", LearningRate: -1},
		{Kind: "sgd", LearningRate: math.Inf(1)},
		{Kind: "adagrad", LearningRate: 1},
		{Kind: "adam", LearningRate: 1, Beta1: 0.9, Beta2: 1, Epsilon: 1},
		{Kind: "ftrl", FTRLBeta: 1},
		{Kind: "ftrl", LearningRate: 1},
		{Kind: "sgd", LearningRate: 0.1, TableL2: 0.1},
		{Kind: "adagrad", LearningRate: 0.1, Epsilon: 1, TableL2: 10},
		{Kind: "adagrad", LearningRate: 0.1, Epsilon: 1, TableL2: 0.1, WeightDecay: 0.1},
	} {
		if _, err := NewRows(cfg, 2); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	if _, err := NewRows(RowConfig{Kind: "sgd"}, 0); err == nil {
		t.Error("rows without values were accepted")
	}
}

// BenchmarkRows updates rows of 16 values that lie apart, as those of a mini-batch do in
// a table, with each optimizer, on one thread. The limit is reading memory in order.
func BenchmarkRows(b *testing.B) {
	const dim, rows = 16, 1 << 17
	for _, cfg := range []RowConfig{
		{Kind: "sgd", LearningRate: 0.1},
		{Kind: "adagrad", LearningRate: 0.1, Epsilon: 1e-8},
		{Kind: "rowwise_adagrad", LearningRate: 0.1, Epsilon: 1e-8},
		{Kind: "adam", LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
		{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1},
	} {
		b.Run(cfg.Kind, func(b *testing.B) {
			r, err := NewRows(cfg, dim)
			if err != nil {
				b.Fatal(err)
			}
			width := dim + r.StateDim()
			table, grad := make([]float32, rows*width), make([]float32, dim)
			fill(table, 0.1)
			fill(grad, 0.1)
			order := rand.New(rand.NewPCG(1, 0)).Perm(rows)
			step := r.Step(1, 1)
			b.ReportAllocs()
			for b.Loop() {
				for _, i := range order {
					row := table[i*width:][:width]
					step.Update(row[:dim], row[dim:], grad)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			// Each row is read and written.
			kernel.ReportLimits(b, b.N, kernel.Work{Threads: 1, Bytes: 2 * 4 * rows * width, Memory: 4 * rows * width})
		})
	}
}

// update updates one row in step t.
func update(r *Rows, t int64, lrScale float32, values, state, grad []float32) {
	s := r.Step(t, lrScale)
	s.Update(values, state, grad)
}
