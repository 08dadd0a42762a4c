package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// bench is a small network with a table, an engine and random mini-batches.
type bench struct {
	model  *model.Model
	table  sparsetable.Table
	layout sparsetable.Layout
	engine engine.Engine
	state  engine.State
	pass   *reader.Pass
	rows   *sparsetable.WorkingSet
}

func newBench(t *testing.T, seed uint64, spec model.Spec) *bench {
	t.Helper()
	return newBenchIn(t, engine.Float32, seed, spec)
}

func newBenchIn(t *testing.T, precision engine.Precision, seed uint64, spec model.Spec) *bench {
	t.Helper()
	b := new(bench)
	var err error
	if b.model, err = model.New(spec); err != nil {
		t.Fatal(err)
	}
	if b.state.Dense, err = optim.NewDense(optim.DenseConfig{Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, b.model.Params()); err != nil {
		t.Fatal(err)
	}
	rows, err := optim.NewRows(optim.RowConfig{Kind: "adagrad", LearningRate: 0.01, Epsilon: 1e-8}, spec.RowDim())
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := optim.NewSchedule(optim.ScheduleConfig{Decay: "none"})
	if err != nil {
		t.Fatal(err)
	}
	b.state.RowSteps = engine.NewRowSteps(spec.Fields)
	b.layout = sparsetable.Layout{ValueDim: spec.RowDim(), StateDim: rows.StateDim()}
	b.table, err = sparsetable.Open(context.Background(), sparsetable.Options{Layout: b.layout, Init: func(key uint64, row []float32) {
		for i := range b.layout.Values(row) {
			b.layout.Values(row)[i] = float32(key%17)/17 - 0.5 + float32(i)/50
		}
		rows.Init(b.layout.Values(row), b.layout.State(row))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.table.Close() })
	b.pass = randomPass(rand.New(rand.NewPCG(seed, 1)), spec, 3, 150)
	b.engine = mustNew(t, engine.Config{
		Network: b.model.Network(), Precision: precision, Layout: b.layout, Rows: rows, Schedule: schedule, Day: 7, ShowDecay: 1, MinOccurrences: 1,
	}, &b.state)
	b.begin(t)
	return b
}

func mustNew(t *testing.T, c engine.Config, state *engine.State) engine.Engine {
	t.Helper()
	e, err := cpu.New(c, state)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPrecisions checks that the engine, which has no products in tf32, refuses that precision.
func TestPrecisions(t *testing.T) {
	_, err := cpu.New(engine.Config{Precision: engine.TF32}, &engine.State{})
	if err == nil || errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "engine.precision") {
		t.Errorf("tf32: %v", err)
	}
}

func (b *bench) begin(t *testing.T) {
	t.Helper()
	var err error
	if b.rows, err = b.table.Pull(t.Context(), b.pass.Keys, sparsetable.PullCreate); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Begin(engine.Pass{Keys: b.pass.Keys, Rows: b.rows}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) end(t *testing.T) {
	t.Helper()
	if err := b.engine.End(); err != nil {
		t.Fatal(err)
	}
	b.rows.Release()
}

// values are those of all rows, and of all parameters and running statistics.
func (b *bench) values() (rows, dense []float32) {
	for i := range b.pass.Keys {
		rows = append(rows, b.layout.Values(b.rows.Row(i))...)
	}
	for _, p := range slices.Concat(b.model.Params(), b.model.Buffers()) {
		dense = append(dense, p.Data...)
	}
	return rows, dense
}

func randomPass(rng *rand.Rand, spec model.Spec, batches, examples int) *reader.Pass {
	pass := new(reader.Pass)
	for i := range 60 {
		pass.Keys = append(pass.Keys, uint64(i*7+1))
	}
	for range batches {
		b := reader.Batch{N: examples, Offsets: []int32{0}}
		for i := range pass.Keys {
			b.Rows = append(b.Rows, int32(i))
		}
		for range examples {
			b.Labels = append(b.Labels, float32(rng.IntN(2)))
			for range spec.Dense {
				b.Dense = append(b.Dense, float32(rng.NormFloat64()))
			}
			for range spec.Fields {
				for range rng.IntN(3) {
					b.Index = append(b.Index, int32(rng.IntN(len(pass.Keys))))
				}
				b.Offsets = append(b.Offsets, int32(len(b.Index)))
			}
		}
		b.Invert(len(b.Rows))
		pass.Batches = append(pass.Batches, b)
	}
	return pass
}

func spec(norm bool) model.Spec {
	return model.Spec{Kind: "deepfm", Fields: []string{"a", "b", "c"}, Dense: []string{"x", "y"}, EmbeddingDim: 4, HiddenLayers: []int{24, 12}, BatchNorm: norm}
}

func nothing(*engine.Result) error { return nil }

// TestNotFinite checks that a mini-batch whose loss or statistics are not finite changes neither
// parameters nor values of rows, while its statistics of rows are counted as usual.
func TestNotFinite(t *testing.T) {
	for _, norm := range []bool{false, true} {
		t.Run(fmt.Sprint("norm=", norm), func(t *testing.T) {
			seed := testseed.Of(t)
			b, other := newBench(t, seed, spec(norm)), newBench(t, seed, spec(norm))
			for _, x := range []*bench{b, other} {
				if err := x.engine.Train(engine.Batch{Batch: &x.pass.Batches[0]}, nothing); err != nil {
					t.Fatal(err)
				}
			}
			rows, dense := b.values()
			b.pass.Batches[1].Dense[5] = float32(math.Inf(1))
			delivered := false
			err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[1]}, func(*engine.Result) error {
				delivered = true
				return nil
			})
			if end := b.engine.End(); err == nil {
				err = end
			}
			if !errors.Is(err, program.ErrNotFinite) || delivered {
				t.Errorf("error %v, delivered: %v", err, delivered)
			}
			if rowsNow, denseNow := b.values(); !slices.Equal(rowsNow, rows) || !slices.Equal(denseNow, dense) {
				t.Error("values have changed")
			}
			if b.state.Step != 1 {
				t.Errorf("step %d", b.state.Step)
			}
			if err := other.engine.Train(engine.Batch{Batch: &other.pass.Batches[1]}, nothing); err != nil {
				t.Fatal(err)
			}
			for i := range b.pass.Keys {
				if got, want := b.layout.Stats(b.rows.Row(i)), other.layout.Stats(other.rows.Row(i)); got != want {
					t.Fatalf("statistics of row %d depend on values: %+v, %+v", i, got, want)
				}
			}
			b.rows.Release()
			other.end(t)
		})
	}
}

// TestSharedRows checks that a pass uses the rows that it shares with the pass before as that pass
// has left them.
func TestSharedRows(t *testing.T) {
	seed := testseed.Of(t)
	one, two := newBench(t, seed, spec(false)), newBench(t, seed, spec(false))
	for i := range one.pass.Batches {
		if err := one.engine.Train(engine.Batch{Batch: &one.pass.Batches[i]}, nothing); err != nil {
			t.Fatal(err)
		}
		if err := two.engine.Train(engine.Batch{Batch: &two.pass.Batches[i]}, nothing); err != nil {
			t.Fatal(err)
		}
		// The next pass is pulled before this one ends, as in the pipeline.
		before := two.rows
		if err := two.engine.End(); err != nil {
			t.Fatal(err)
		}
		two.begin(t)
		before.Release()
	}
	rows, dense := one.values()
	if rowsTwo, denseTwo := two.values(); !slices.Equal(rows, rowsTwo) || !slices.Equal(dense, denseTwo) {
		t.Error("one pass for each mini-batch gives another model than one for all")
	}
	one.end(t)
	two.end(t)
}

// TestCheck checks that a parameter that the last update has made infinite is detected.
func TestCheck(t *testing.T) {
	b := newBench(t, testseed.Of(t), spec(false))
	defer b.end(t)
	if err := b.engine.Check(); err != nil {
		t.Error(err)
	}
	b.model.Params()[1].Data[0] = float32(math.Inf(-1))
	if err := b.engine.Check(); !errors.Is(err, program.ErrNotFinite) {
		t.Errorf("%v", err)
	}
}

// TestNoGarbage wants a step of training, with its rows, to allocate nothing.
func TestNoGarbage(t *testing.T) {
	for _, precision := range []engine.Precision{engine.Float32, engine.BF16} {
		b := newBenchIn(t, precision, testseed.Of(t), spec(true))
		b.wantNoGarbage(t, precision.String())
		b.end(t)
	}
	newDecayBench(t, "adam", true, false, 1).decayed.wantNoGarbage(t, "linear weights of their own")
}

func (b *bench) wantNoGarbage(t *testing.T, what string) {
	t.Helper()
	if garbage := testing.AllocsPerRun(10, func() {
		if err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[0]}, nothing); err != nil {
			t.Fatal(err)
		}
		if err := b.engine.Infer(engine.Batch{Batch: &b.pass.Batches[1]}, nothing); err != nil {
			t.Fatal(err)
		}
	}); garbage > 0 && !raceEnabled {
		t.Errorf("%s: %v allocations in a step", what, garbage)
	}
}
