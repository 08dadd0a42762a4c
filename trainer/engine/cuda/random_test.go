package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

func draw[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// randomSpec draws a model of any kind, whose layers have all kinds of widths.
func randomSpec(rng *rand.Rand) model.Spec {
	layers := func(n int) (widths []int) {
		for range n {
			widths = append(widths, draw(rng, 1, 2, 5, 7, 8, 12, 16, 17, 33))
		}
		return widths
	}
	s := model.Spec{
		Kind: draw(rng, model.Kinds()...), EmbeddingDim: draw(rng, 1, 2, 3, 5, 8, 16, 17), HiddenLayers: layers(1 + rng.IntN(3)), CrossLayers: 1 + rng.IntN(3),
		Structure: draw(rng, model.Parallel, model.Stacked), Activation: draw(rng, "relu", "relu", "leaky_relu", "tanh", "sigmoid", "identity"),
		Dropout: draw(rng, 0, 0, 0.3), BatchNorm: rng.IntN(4) == 0, Pooling: draw(rng, "sum", "mean"), Seed: rng.Uint64(),
	}
	for i := range 2 + rng.IntN(4) {
		s.Fields, s.Poolings = append(s.Fields, fmt.Sprint("field ", i)), append(s.Poolings, draw(rng, "", "sum", "mean"))
	}
	for i := range draw(rng, 0, 1, 3, 9) {
		s.Dense = append(s.Dense, fmt.Sprint("dense ", i))
	}
	s.BottomLayers = append(layers(rng.IntN(3)), s.EmbeddingDim)
	switch s.Kind {
	case model.KindDCNv2:
		s.CrossRank = draw(rng, 0, 1, 3)
	case model.KindFM, model.KindDeepFM:
		s.DenseVectors = rng.IntN(2) == 0
	case model.KindAIBox:
		for i := range rng.IntN(4) {
			t := model.Tower{Name: fmt.Sprint("tower", i), Layers: layers(rng.IntN(3))}
			for column := range s.Dense {
				if rng.IntN(2) == 0 {
					t.Dense = append(t.Dense, column)
				}
			}
			s.Towers = append(s.Towers, t)
		}
	}
	return s
}

// randomSetup draws a model, optimizers, and the formats of numbers.
func randomSetup(rng *rand.Rand) setup {
	s := setup{spec: randomSpec(rng), dense: adam, seed: rng.Uint64(), admitted: rng.IntN(2) == 0, examples: draw(rng, 1, 2, 7, 16, 33)}
	s.dense.Kind, s.dense.Averaging = draw(rng, "sgd", "momentum", "adagrad", "adam", "adamw"), draw(rng, 0, 0.9)
	s.rows = &optim.RowConfig{
		Kind: draw(rng, "sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"), LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, FTRLBeta: 1,
	}
	if s.rows.Kind != "ftrl" {
		s.decay = draw(rng, 0, 0.5)
	}
	s.precision = draw(rng, engine.Float32, engine.BF16, engine.TF32)
	s.format = draw(rng, sparsetable.Float32, sparsetable.Float16, sparsetable.BFloat16)
	return s
}

// randomBags gives a mini-batch other bags, of the same rows: of up to most features, some with weights.
func randomBags(rng *rand.Rand, b *reader.Batch, most int) {
	bags := len(b.Offsets) - 1
	*b = reader.Batch{N: b.N, Labels: b.Labels, Dense: b.Dense, Rows: b.Rows, Offsets: []int32{0}}
	weighted := rng.IntN(2) == 0
	for range bags {
		for range rng.IntN(most + 1) {
			b.Index = append(b.Index, int32(rng.IntN(len(b.Rows))))
			if weighted {
				b.BagWeights = append(b.BagWeights, draw(rng, 0, 1, rng.Float32()))
			}
		}
		b.Offsets = append(b.Offsets, int32(len(b.Index)))
	}
	if rng.IntN(2) == 0 {
		for range b.N {
			b.Weights = append(b.Weights, draw(rng, 0, 1, rng.Float32()))
		}
	}
	b.Invert(len(b.Rows))
	if rng.IntN(2) == 0 {
		b.SetMade()
	}
}

// TestRandomJobs: whatever the model, its optimizers and its mini-batches are, devices use nothing that was not written, or without an order,
// and rows that they have become the bits of rows on the host.
func TestRandomJobs(t *testing.T) {
	rng := testseed.Rand(t)
	jobs := 24
	if testing.Short() {
		jobs = 8
	}
	for i := range jobs {
		s := randomSetup(rng)
		n := randomNight(rng, s, 3, draw(rng, 20, 300))
		for _, p := range n.passes {
			for k := range p.Batches {
				if rng.IntN(3) > 0 {
					randomBags(rng, &p.Batches[k], draw(rng, 1, 3, 40))
				}
			}
		}
		numbers := [][]int{{0}, {0, 1}, {1, 0, 1}, devices(5)}[i%4]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			logSetup(t, &s, numbers)
			want, _, _, err := nightOn(t, s, n, numbers, 1<<30, s.seed)
			if err != nil {
				t.Fatal(err)
			}
			s.held = true
			got, _, _, err := nightOn(t, s, n, numbers, 1<<30, s.seed+1)
			if err != nil {
				t.Fatal(err)
			}
			sameNight(t, got, want)
		})
	}
}

// randomCalmSetup draws a setup whose results depend on roundings no more than by about as much: with functions that are smooth, or seldom are not, and optimizers for which a
// gradient that is nothing but rounding makes no step of full size.
func randomCalmSetup(rng *rand.Rand) setup {
	s := randomSetup(rng)
	s.examples = draw(rng, 1, 2, 5, 9, 24, 37)
	s.spec.BatchNorm = s.spec.BatchNorm && s.spec.Kind != model.KindAIBox // of which a tower may have nothing but rows
	if s.spec.BatchNorm {                                                 // of a few examples, or of such that are alike, it makes what their roundings are
		s.examples, s.precision, s.format, s.admitted = draw(rng, 24, 33), engine.Float32, sparsetable.Float32, true
		if len(s.spec.Dense) < 3 {
			s.spec.Dense = []string{"dense 0", "dense 1", "dense 2"}
		}
	}
	if s.spec.Activation = draw(rng, "tanh", "sigmoid", "identity", "relu"); !s.exact() {
		s.spec.Activation = "tanh"
	}
	rates := func() float64 { return draw(rng, 0.01, 0.05) }
	s.dense = optim.DenseConfig{
		Kind: s.dense.Kind, LearningRate: rates(), Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Epsilon: 0.01, InitialAccumulator: 0.1, L2: draw(rng, 0, 0.01),
		WeightDecay: 0.1, Averaging: s.dense.Averaging,
	}
	rows := func() *optim.RowConfig {
		return &optim.RowConfig{
			Kind: draw(rng, "sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"), LearningRate: rates(), Beta1: 0.9, Beta2: 0.999, Epsilon: 0.01,
			InitialAccumulator: 0.1, L2: draw(rng, 0, 0.01), FTRLBeta: 1, FTRLL1: draw(rng, 0, 0.001), FTRLL2: draw(rng, 0, 0.01),
		}
	}
	s.rows, s.decay, s.tableL2 = rows(), 0, 0
	if s.spec.RowDim() > s.spec.EmbeddingDim && rng.IntN(2) == 0 {
		s.linear = rows()
	}
	switch kind := s.rows.Kind; {
	case kind == "ftrl":
	case (kind == "adagrad" || kind == "rowwise_adagrad") && rng.IntN(3) == 0:
		s.tableL2 = draw(rng, 0.01, 0.3)
	default:
		s.decay = draw(rng, 0, 0.5)
	}
	if m, err := model.New(s.spec); err == nil {
		for _, p := range m.Params() {
			if rng.IntN(6) == 0 {
				s.own = append(s.own, optim.Own{Param: p.Name, Config: *rows()})
			}
		}
	}
	if rng.IntN(3) == 0 {
		s.began = func(param, value int) int64 { return -int64(param % 3 * min(value/10, 2)) }
	}
	if rng.IntN(3) == 0 {
		for range s.spec.Fields {
			s.rowsBegan = append(s.rowsBegan, -draw[int64](rng, 0, 0, 3, 90))
		}
	}
	s.step = draw[int64](rng, 0, 0, 1000)
	s.schedule = optim.ScheduleConfig{
		WarmupSteps: draw[int64](rng, 0, 2), Decay: draw(rng, "none", "linear", "cosine", "exponential", "inverse_sqrt"), DecaySteps: 4, DecayRate: 0.5, Floor: draw(rng, 0, 0.1),
	}
	return s
}

// exact tells whether no numbers are rounded to fewer bits than those of float32.
func (s *setup) exact() bool { return s.precision == engine.Float32 && s.format == sparsetable.Float32 }

// TestRandomJobsLikeHost: whatever the model, its optimizers and its mini-batches are, devices make of them what the processors of the host do, up to
// roundings, wherever the rows are.
func TestRandomJobsLikeHost(t *testing.T) {
	seed := testseed.Of(t)
	jobs := 32
	if testing.Short() {
		jobs = 10
	}
	for i := range jobs {
		t.Run(fmt.Sprint(i), func(t *testing.T) { randomJobLikeHost(t, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
}

// randomCalmJob draws a setup, a night of mini-batches of any size, and devices.
func randomCalmJob(rng *rand.Rand) (s setup, n *night, numbers []int) {
	s = randomCalmSetup(rng)
	n = randomNight(rng, s, 3, draw(rng, 20, 300))
	for _, p := range n.passes {
		for k := range p.Batches {
			b := &p.Batches[k]
			if s.spec.BatchNorm {
				continue
			}
			if rng.IntN(3) == 0 {
				other := s
				other.examples = 1 + rng.IntN(s.examples)
				*b = randomBatch(rng, other, len(p.Keys))
			}
			if rng.IntN(3) > 0 {
				randomBags(rng, b, draw(rng, 1, 3, 12))
			}
		}
	}
	return s, n, draw(rng, []int{0}, []int{0, 1}, []int{1, 0, 1}, []int{0, 1, 2}, devices(8))
}

// logSetup says what a random job was if the test has failed.
func logSetup(t *testing.T, s *setup, numbers []int) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v, rows %+v, linear %+v, on devices %v", *s, s.rows, s.linear, numbers)
		}
	})
}

func randomJobLikeHost(t *testing.T, rng *rand.Rand) {
	s, n, numbers := randomCalmJob(rng)
	logSetup(t, &s, numbers)
	tolerance, scale := 1e-4, 1e-3
	onHost := s
	if s.precision == engine.TF32 {
		onHost.precision = engine.Float32
	}
	switch {
	case !s.exact():
		tolerance, scale = 0.1, 0.1
	case s.spec.BatchNorm:
		tolerance = 1e-3
	}
	host := newBench(t, onHost)
	var err error
	if host.engine, err = cpu.New(host.config, &host.state); err != nil {
		t.Fatal(err)
	}
	want, diverges := host.live(n)
	if diverges != nil && !errors.Is(diverges, program.ErrNotFinite) {
		t.Fatal(diverges)
	}
	for _, s.held = range []bool{false, true} {
		got, _, _, err := nightOn(t, s, n, numbers, 1<<30, rng.Uint64())
		if errors.Is(err, program.ErrNotFinite) != errors.Is(diverges, program.ErrNotFinite) {
			t.Fatalf("%v, want %v", err, diverges)
		}
		if diverges == nil {
			nearNight(t, got, want, tolerance, scale)
		}
	}
}

// TestRandomJobsFail: whatever call or operation of a random job fails, and however, what it has made until then is right; so is all of it where there
// was no room for memory that it can do without.
func TestRandomJobsFail(t *testing.T) {
	seed := testseed.Of(t)
	jobs, faults := 10, 10
	if testing.Short() {
		jobs, faults = 4, 6
	}
	for i := range jobs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s, n, numbers := randomCalmJob(rng)
			s.held = rng.IntN(4) > 0
			logSetup(t, &s, numbers)
			p := platform(8, rng.Uint64())
			want, _, _, err := nightOnPlatform(t, s, n, numbers, p)
			if errors.Is(err, program.ErrNotFinite) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			calls, operations := p.Calls(), p.Operations()
			for range faults {
				kind := draw(rng, gpu.OutOfMemory, gpu.LaunchFailed, gpu.DeviceLost, gpu.ECC)
				p := platform(8, rng.Uint64())
				what, at := "call", 1+rng.IntN(calls)
				if p.FailCall(at, kind); kind != gpu.OutOfMemory && rng.IntN(2) == 0 {
					p.FailCall(0, 0)
					what, at = "operation", 1+rng.IntN(operations)
					p.FailOperation(at, kind)
				}
				got, _, _, err := nightOnPlatform(t, s, n, numbers, p)
				if err == nil {
					reached := what == "call" && at <= p.Calls() || what == "operation" && at <= p.Operations()
					if kind != gpu.OutOfMemory && reached {
						t.Fatalf("%s %d failed with %v, which nobody has noticed", what, at, kind)
					}
					sameNight(t, got, want)
					continue
				}
				if !errors.As(err, new(*gpu.Error)) {
					t.Fatalf("%s %d failed with %v: %v", what, at, kind, err)
				}
				sameNight(t, got, want[:len(got)])
			}
		})
	}
}

// TestRandomJobsShortOfMemory: with however little memory of devices, or pinned memory, a random job makes the same, or ends with an error that says that there
// is too little.
func TestRandomJobsShortOfMemory(t *testing.T) {
	seed := testseed.Of(t)
	jobs, sizes := 8, 10
	if testing.Short() {
		jobs, sizes = 3, 5
	}
	for i := range jobs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s, _, numbers := randomCalmJob(rng)
			n := randomNight(rng, s, 4, 3000)
			for _, p := range n.passes {
				for k := range p.Batches {
					other := s
					other.examples *= draw(rng, 1, 1, 4)
					p.Batches[k] = randomBatch(rng, other, min(300, len(p.Keys)))
				}
			}
			s.held = true
			logSetup(t, &s, numbers)
			night := func(bytes, pinned int64) ([]entry, int64, error) {
				o := optionsOf(8, bytes, 16<<10, rng.Uint64())
				o.PinnedBytes = pinned
				log, _, peak, err := nightOnPlatform(t, s, n, numbers, emulated.New(o))
				return log, peak, err
			}
			want, peak, err := night(1<<30, 0)
			if errors.Is(err, program.ErrNotFinite) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for range sizes {
				share := 0.3 + 0.8*rng.Float64()
				bytes, pinned := int64(2*float64(peak)*share), int64(0) // of which two of the devices may be one
				if rng.IntN(4) == 0 {
					bytes, pinned = 1<<30, bytes
				}
				got, _, err := night(bytes, pinned)
				if err != nil && !errors.Is(err, gpu.OutOfMemory) {
					t.Fatalf("%d bytes, %d pinned: %v", bytes, pinned, err)
				}
				if err == nil {
					sameNight(t, got, want)
				} else {
					sameNight(t, got, want[:len(got)])
				}
			}
		})
	}
}

// nearNight fails the test unless both are the same up to roundings, which are those of values of at least scale.
func nearNight(t *testing.T, got, want []entry, tolerance, scale float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.step != w.step || !slices.Equal(g.stats, w.stats) {
			t.Fatalf("entry %d is of step %d, with statistics %v, want step %d and %v", i, g.step, g.stats, w.step, w.stats)
		}
		nearAbove(t, fmt.Sprint("loss ", i), []float32{float32(g.loss)}, []float32{float32(w.loss)}, tolerance, scale)
		nearAbove(t, fmt.Sprint("logits ", i), g.logits, w.logits, tolerance, scale)
		nearAbove(t, fmt.Sprint("rows ", i), g.values, w.values, tolerance, scale)
		for name := range w.tensors {
			nearAbove(t, fmt.Sprint(name, " ", i), g.tensors[name], w.tensors[name], tolerance, scale)
		}
	}
}
