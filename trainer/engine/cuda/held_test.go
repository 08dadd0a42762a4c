package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/ops"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// likeOnHost trains, infers and trains again with rows on n devices and with rows on the host, and
// wants the same bits.
func likeOnHost(t *testing.T, s setup, n int) {
	t.Helper()
	want, got := onDevices(t, s, n, s.seed), (*bench)(nil)
	s.held = true
	got = onDevices(t, s, n, s.seed+uint64(n))
	half := s.batches / 2
	for _, part := range [][2]int{{0, half}, {half, s.batches}} {
		wantLosses, wantLogits := want.train(t, part[0], part[1])
		losses, logits := got.train(t, part[0], part[1])
		if fmt.Sprint(losses, logits) != fmt.Sprint(wantLosses, wantLogits) {
			t.Fatalf("losses %v and logits %v, want %v and %v", losses, logits, wantLosses, wantLogits)
		}
		for _, b := range []*bench{want, got} {
			b.end(t)
		}
		if fmt.Sprint(got.infer(t)) != fmt.Sprint(want.infer(t)) {
			t.Fatal("inferred logits differ")
		}
		sameBits(t, got.values(), want.values())
		for i, st := range got.stats() {
			if st != want.stats()[i] {
				t.Fatalf("statistics of row %d: %+v, want %+v", i, st, want.stats()[i])
			}
		}
		for _, b := range []*bench{want, got} {
			b.begin(t)
		}
	}
	for _, b := range []*bench{want, got} {
		b.end(t)
	}
}

// TestHeldRows: rows on the devices become the same bits as rows on the host, for every model and
// number of devices.
func TestHeldRows(t *testing.T) {
	seed := testseed.Of(t)
	for name, spec := range model.Examples() {
		t.Run(name, func(t *testing.T) {
			for _, n := range numbers() {
				likeOnHost(t, setup{spec: spec, dense: adam, seed: seed, batches: 6, examples: 37}, n)
			}
		})
	}
}

// TestHeldRowsPooledInPlace: devices pool bags where the program wants them. Nothing copies them,
// or takes memory for a copy.
func TestHeldRowsPooledInPlace(t *testing.T) {
	seed := testseed.Of(t)
	specs := model.Examples()
	specs["large dlrm"] = dlrm()
	for name, spec := range specs {
		for _, held := range []bool{false, true} {
			b := newBench(t, setup{spec: spec, dense: adam, held: held, seed: seed, batches: 1, examples: 30})
			p := nothing{new(calls)}
			b.open(t, p, devices(1))
			b.begin(t)
			b.trainFirst(t, 1)
			want := 0
			for _, s := range b.config.Network.Train.Steps {
				if s.Kind == program.KindCopy || s.Kind == ops.KindBagPool && !held {
					want++
				}
			}
			if p.calls.moves != want {
				t.Errorf("%s, rows on devices %v: %d copies of matrices, want %d", name, held, p.calls.moves, want)
			}
		}
		b := newBench(t, setup{spec: spec, dense: adam, seed: seed, batches: 1, examples: 1})
		host, device := cuda.Forecast(b.config, &b.state, 1, 500, false, 0), cuda.Forecast(b.config, &b.state, 1, 500, true, 0)
		if host.Arena != device.Arena {
			t.Errorf("%s: an arena of %d bytes, with rows on devices of %d", name, host.Arena, device.Arena)
		}
	}
}

// TestHeldRowsOptimizers: the same for every optimizer of rows, format of values, decay, precision,
// and admission.
func TestHeldRowsOptimizers(t *testing.T) {
	seed := testseed.Of(t)
	configs := map[string]optim.RowConfig{
		"sgd":             {Kind: "sgd", LearningRate: 0.1, L2: 0.01},
		"adagrad":         {Kind: "adagrad", LearningRate: 0.05, Epsilon: 1e-8, InitialAccumulator: 0.1},
		"rowwise_adagrad": {Kind: "rowwise_adagrad", LearningRate: 0.05, Epsilon: 1e-8},
		"adam":            {Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
		"ftrl":            {Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1, FTRLL1: 0.001},
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			for i, format := range []sparsetable.ValueFormat{sparsetable.Float32, sparsetable.Float16, sparsetable.BFloat16} {
				s := setup{spec: deep(i == 1), dense: adam, rows: &config, format: format, admitted: i == 2, seed: seed + uint64(i), batches: 6, examples: 31}
				likeOnHost(t, s, 1+i)
				if name != "ftrl" {
					s.decay = 0.5
				}
				s.precision = engine.BF16
				likeOnHost(t, s, 3-i)
			}
		})
	}
	ftrl := configs["ftrl"]
	adamRows := configs["adam"]
	s := setup{spec: model.Examples()["wide_deep"], dense: adam, rows: &adamRows, linear: &ftrl, seed: seed, batches: 6, examples: 31}
	likeOnHost(t, s, 2)
}
