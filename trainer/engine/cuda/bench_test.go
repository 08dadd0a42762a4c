package cuda_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels/twin"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// setup says what a bench trains.
type setup struct {
	spec      model.Spec
	dense     optim.DenseConfig
	own       []optim.Own
	began     func(param, value int) int64 // of the state; nil: with step 1
	precision engine.Precision
	format    sparsetable.ValueFormat
	decay     float64 // of rows
	tableL2   float64
	schedule  optim.ScheduleConfig // zero: a warm-up of three steps
	step      int64                // steps of earlier models
	rowsBegan []int64              // of the state of each field's rows; nil: with step 1
	admitted  bool                 // all rows are, from the first occurrence on
	rows      *optim.RowConfig     // nil: Adagrad
	linear    *optim.RowConfig     // of the first value; nil: as of the others
	held      bool                 // rows are on the devices
	fails     bool                 // the platform was told to fail
	seed      uint64               // of data
	batches   int
	examples  int                         // of the largest mini-batch
	images    map[string]emulated.Kernels // nil: the twins
}

var adam = optim.DenseConfig{Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

// bench is a model with a table, random mini-batches and an engine.
type bench struct {
	setup
	model  *model.Model
	table  sparsetable.Table
	layout sparsetable.Layout
	config engine.Config
	state  engine.State
	pass   *reader.Pass
	rows   *sparsetable.WorkingSet
	engine engine.Engine
}

// newBench makes all but the engine. The same setup gives the same.
func newBench(t testing.TB, s setup) *bench {
	t.Helper()
	b := &bench{setup: s}
	var err error
	fatal := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	b.model, err = model.New(s.spec)
	fatal(err)
	rng := rand.New(rand.NewPCG(s.seed, 2))
	for _, p := range b.model.Params() { // so that everything has a gradient
		for i := range p.Data {
			p.Data[i] += float32(rng.NormFloat64()) * 0.2
		}
	}
	b.state.Dense, err = optim.NewDense(s.dense, b.model.Params(), s.own...)
	fatal(err)
	for i, p := range b.model.Params() {
		began := make([]int64, len(p.Data))
		for v := range began {
			if s.began != nil {
				began[v] = s.began(i, v)
			}
		}
		b.state.Dense.Begin(i, began)
	}
	config := optim.RowConfig{Kind: "adagrad", LearningRate: 0.05, Epsilon: 1e-8}
	if s.rows != nil {
		config = *s.rows
	}
	config.WeightDecay, config.TableL2 = s.decay, s.tableL2
	rows, err := optim.NewRows(config, s.spec.RowDim())
	if s.linear != nil {
		rows, err = optim.NewLinearRows(*s.linear, config, s.spec.RowDim())
	}
	fatal(err)
	scheduled := s.schedule
	if scheduled == (optim.ScheduleConfig{}) {
		scheduled = optim.ScheduleConfig{WarmupSteps: 3, Decay: "none"}
	}
	schedule, err := optim.NewSchedule(scheduled)
	fatal(err)
	b.state.RowSteps = engine.NewRowSteps(s.spec.Fields)
	if s.rowsBegan != nil {
		text, err := json.Marshal(s.rowsBegan)
		fatal(err)
		fatal(json.Unmarshal(text, b.state.RowSteps))
	}
	b.state.Step, b.state.FirstStep = s.step, s.step
	b.layout = sparsetable.Layout{ValueDim: s.spec.RowDim(), StateDim: rows.StateDim(), Format: s.format}
	if s.decay+s.tableL2 > 0 {
		b.layout.StateDim++
		h, _ := (*decay.History)(nil).Continued(s.step, decay.RatesOf(rows), scheduled)
		b.state.Decay, err = decay.NewTimeline(h)
		fatal(err)
	}
	b.table, err = sparsetable.Open(t.Context(), sparsetable.Options{Layout: b.layout, Init: func(key uint64, row []float32) {
		values := make([]float32, s.spec.RowDim())
		for i := range values {
			values[i] = float32(key%17)/17 - 0.5 + float32(i)/50
		}
		b.layout.StoreValues(row, values, key, sparsetable.NewRounding(1, 0))
		rows.Init(values, b.layout.State(row)[:rows.StateDim()])
	}})
	fatal(err)
	t.Cleanup(func() { _ = b.table.Close() })
	b.pass = randomPass(rng, s)
	b.config = engine.Config{
		Network: b.model.Network(), Precision: s.precision, Layout: b.layout, Rows: rows, Schedule: schedule,
		Day: 7, ShowDecay: 1, MinOccurrences: 2, Seed: 5,
	}
	if s.admitted {
		b.config.MinOccurrences = 1
	}
	return b
}

// onHost returns a bench with the engine of the host's processors.
func onHost(t testing.TB, s setup) *bench {
	t.Helper()
	b := newBench(t, s)
	var err error
	if b.engine, err = cpu.New(b.config, &b.state); err != nil {
		t.Fatal(err)
	}
	b.begin(t)
	return b
}

// platform returns a platform of n devices.
func platform(n int, seed uint64) *emulated.Platform { return multiplying(n, 1<<30, 64<<10, seed) }

// multiplying returns a platform of n devices with so many bytes, of which products take some.
func multiplying(n int, bytes, productBytes int64, seed uint64) *emulated.Platform {
	return emulated.New(optionsOf(n, bytes, productBytes, seed))
}

func optionsOf(n int, bytes, productBytes int64, seed uint64) emulated.Options {
	infos := emulated.Devices(n, bytes)
	for i := range infos {
		infos[i].ProductBytes = productBytes
	}
	return emulated.Options{Devices: infos, Images: twin.Images(), Seed: seed}
}

// fusing returns a platform whose devices can do, by the remainder of choice by 3, all products
// with their epilogues, none, or some.
func fusing(n int, seed, choice uint64) *emulated.Platform {
	o := optionsOf(n, 1<<30, 64<<10, seed)
	switch choice % 3 {
	case 1:
		o.Fuses = func(gpu.ProductShape) bool { return false }
	case 2:
		o.Fuses = func(s gpu.ProductShape) bool {
			h := fnv.New64a()
			fmt.Fprint(h, s)
			return h.Sum64()%2 == 0
		}
	}
	return emulated.New(o)
}

// devices are the first n devices.
func devices(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// onDevices returns a bench with an engine on n emulated devices.
func onDevices(t testing.TB, s setup, n int, seed uint64) *bench {
	t.Helper()
	return on(t, s, fusing(n, seed, s.seed))
}

// on returns a bench with an engine on all devices of a platform.
func on(t testing.TB, s setup, p *emulated.Platform) *bench {
	t.Helper()
	return onPlatform(t, newBench(t, s), p)
}

// onPlatform gives a bench an engine on all devices of a platform.
func onPlatform(t testing.TB, b *bench, p *emulated.Platform) *bench {
	t.Helper()
	e := b.open(t, p, devices(len(p.Devices())))
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	})
	b.begin(t)
	return b
}

// open gives a bench an engine on some devices of a platform.
func (b *bench) open(t testing.TB, p gpu.Platform, devices []int) *cuda.Engine {
	t.Helper()
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: p, Devices: devices, RowsOnDevice: b.held})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	return e
}

func (b *bench) begin(t testing.TB) {
	t.Helper()
	var err error
	if b.rows, err = b.table.Pull(t.Context(), b.pass.Keys, sparsetable.PullCreate); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Begin(engine.Pass{Keys: b.pass.Keys, Rows: b.rows, Batches: b.pass.Batches}); err != nil {
		t.Fatal(err)
	}
}

// end ends the pass, and exports.
func (b *bench) end(t testing.TB) {
	t.Helper()
	if err := b.engine.End(); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Export(); err != nil {
		t.Fatal(err)
	}
}

// train trains mini-batches lo to hi and returns their losses and logits.
func (b *bench) train(t testing.TB, lo, hi int) (losses []float64, logits [][]float32) {
	t.Helper()
	for i := lo; i < hi; i++ {
		if err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
			if r.Batch != &b.pass.Batches[len(losses)+lo] || r.Step != int64(len(losses)+lo+1) {
				return fmt.Errorf("result %d is that of step %d", len(losses), r.Step)
			}
			losses, logits = append(losses, r.Loss), append(logits, slices.Clone(r.Logits))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if b.held { // the last result is late
		if err := b.engine.End(); err != nil {
			t.Fatal(err)
		}
		b.begin(t)
	}
	return losses, logits
}

// infer returns the logits of all mini-batches, in a pass of its own.
func (b *bench) infer(t testing.TB) (logits [][]float32) {
	t.Helper()
	b.begin(t)
	for i := range b.pass.Batches {
		if err := b.engine.Infer(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
			if r.Batch != &b.pass.Batches[len(logits)] {
				return fmt.Errorf("results are out of order")
			}
			logits = append(logits, slices.Clone(r.Logits))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.end(t)
	if len(logits) != len(b.pass.Batches) {
		t.Fatalf("%d results of %d mini-batches", len(logits), len(b.pass.Batches))
	}
	return logits
}

// tensors are all of the state, by name.
func (b *bench) tensors() map[string][]float32 {
	all := map[string][]float32{}
	for _, p := range slices.Concat(b.model.Params(), b.model.Buffers()) {
		all[p.Name] = slices.Clone(p.Data)
	}
	for _, s := range slices.Concat(b.state.Dense.State(), b.state.Dense.Unaveraged()) {
		all[s.Name] = slices.Clone(s.Data)
	}
	for _, p := range b.model.Params() {
		all[p.Name+" average"] = slices.Clone(b.state.Dense.Average(p))
	}
	return all
}

// values are those of all tensors, and of the rows.
func (b *bench) values() map[string][]float32 {
	all := b.tensors()
	for i := range b.pass.Keys {
		row := make([]float32, b.layout.ValueDim)
		b.layout.LoadValues(row, b.rows.Row(i))
		all["rows"] = append(all["rows"], row...)
	}
	return all
}

// stats are those of all rows.
func (b *bench) stats() (all []sparsetable.RowStats) {
	for i := range b.pass.Keys {
		all = append(all, b.layout.Stats(b.rows.Row(i)))
	}
	return all
}

// near fails the test unless got is want up to rounding errors, relative to the largest value.
func near(t testing.TB, what string, got, want []float32, tolerance float64) {
	t.Helper()
	nearAbove(t, what, got, want, tolerance, 1e-3)
}

// nearAbove is near, where rounding errors are those of values of at least scale.
func nearAbove(t testing.TB, what string, got, want []float32, tolerance, scale float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for _, w := range want {
		scale = max(scale, math.Abs(float64(w)))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= tolerance*scale) {
			t.Fatalf("%s: value %d is %g, want %g (the largest is %g)", what, i, got[i], w, scale)
		}
	}
}

func allNear(t testing.TB, got, want map[string][]float32, tolerance float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		near(t, name, got[name], want[name], tolerance)
	}
}

// sameBits fails the test unless both are equal.
func sameBits(t testing.TB, got, want map[string][]float32) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(got[name], want[name]) {
			t.Errorf("%s differs", name)
		}
	}
}
