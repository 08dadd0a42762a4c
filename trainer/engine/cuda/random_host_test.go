package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// randomCalmSetup draws a setup whose results depend on roundings no more than by about as much:
// with functions that are smooth, or seldom are not, and optimizers for which a gradient that is
// nothing but rounding makes no step of full size.
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

// TestRandomJobsLikeHost: whatever the model, its optimizers and its mini-batches are, devices make
// of them what the processors of the host do, up to roundings, wherever the rows are.
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

// nearNight fails the test unless both are the same up to roundings, which are those of values of
// at least scale.
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
