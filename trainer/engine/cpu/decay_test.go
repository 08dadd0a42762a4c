package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TestWeightDecay checks that rows that are decayed when they are used have, after every step, the
// values of a table that is decayed as a whole in every step, as AdamW does it: before the update,
// whose gradient is that of the values before the decay. Inference must use the same values, and
// write nothing.
func TestWeightDecay(t *testing.T) {
	for _, kind := range []string{"sgd", "adagrad", "rowwise_adagrad", "adam"} {
		for _, split := range []bool{false, true} {
			for _, min := range []uint32{1, 4} {
				t.Run(fmt.Sprintf("%s split=%v min=%d", kind, split, min), func(t *testing.T) {
					d := newDecayBench(t, kind, split, false, min)
					for range 40 {
						d.step(t)
					}
				})
			}
		}
	}
}

// TestTableL2 checks that rows whose decay waits until they are used have, after every step, the
// values of a table whose rows every step reduces after the update, each by its own denominators.
func TestTableL2(t *testing.T) {
	for _, kind := range []string{"adagrad", "rowwise_adagrad"} {
		for _, split := range []bool{false, true} {
			for _, min := range []uint32{1, 4} {
				t.Run(fmt.Sprintf("%s split=%v min=%d", kind, split, min), func(t *testing.T) {
					d := newDecayBench(t, kind, split, true, min)
					for range 40 {
						d.step(t)
					}
				})
			}
		}
	}
}

// decayBench has an engine whose rows decay, and one whose rows a test decays.
type decayBench struct {
	rng            *rand.Rand
	spec           model.Spec
	schedule       optim.Schedule
	min            uint32
	rates          decay.Rates
	decayed, dense *bench
}

func newDecayBench(t *testing.T, kind string, split, divided bool, min uint32) *decayBench {
	t.Helper()
	seed := testseed.Of(t)
	d := &decayBench{rng: rand.New(rand.NewPCG(seed, 2)), spec: spec(false), min: min}
	d.decayed, d.dense = newBench(t, seed, d.spec), newBench(t, seed, d.spec)
	scheduled := optim.ScheduleConfig{WarmupSteps: 7, Decay: "cosine", DecaySteps: 30, Floor: 0.1}
	var err error
	if d.schedule, err = optim.NewSchedule(scheduled); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*bench{d.decayed, d.dense} {
		c := optim.RowConfig{Kind: kind, LearningRate: 0.02, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, InitialAccumulator: 0.1}
		linear := optim.RowConfig{Kind: "adagrad", LearningRate: 0.05, Epsilon: 1e-8, InitialAccumulator: 0.1}
		if b == d.decayed {
			c.WeightDecay, linear.WeightDecay = 0.9, 0.2
			if divided {
				c.WeightDecay, linear.WeightDecay = 0, 0
				c.TableL2, linear.TableL2 = 0.3, 0.1
			}
		}
		rows, err := optim.NewRows(c, d.spec.RowDim())
		if split {
			rows, err = optim.NewLinearRows(linear, c, d.spec.RowDim())
		}
		if err != nil {
			t.Fatal(err)
		}
		b.layout.StateDim = rows.StateDim()
		if b == d.decayed {
			b.layout.StateDim++
			d.rates = decay.RatesOf(rows)
			h, _ := (*decay.History)(nil).Continued(0, d.rates, scheduled)
			if b.state.Decay, err = decay.NewTimeline(h); err != nil {
				t.Fatal(err)
			}
		}
		layout, dim := b.layout, rows.StateDim()
		b.rows.Release()
		b.table, err = sparsetable.Open(t.Context(), sparsetable.Options{Layout: layout, Init: func(key uint64, row []float32) {
			for i := range layout.Values(row) {
				layout.Values(row)[i] = float32(key%17)/17 - 0.5 + float32(i)/50
			}
			rows.Init(layout.Values(row), layout.State(row)[:dim])
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.table.Close() })
		b.engine = mustNew(t, engine.Config{
			Network: b.model.Network(), Layout: layout, Rows: rows, Schedule: d.schedule, Day: 7, ShowDecay: 1, MinOccurrences: min,
		}, &b.state)
		b.begin(t)
	}
	t.Cleanup(func() {
		d.decayed.end(t)
		d.dense.end(t)
	})
	return d
}

// step trains both engines on a small mini-batch, decays one table as a whole, and compares.
func (d *decayBench) step(t *testing.T) {
	t.Helper()
	pass := randomPass(d.rng, d.spec, 1, 3)
	b := &pass.Batches[0]
	keepUsed(b)
	dense := d.dense
	var before [][]float32
	for i := range dense.pass.Keys {
		values := append([]float32(nil), dense.layout.Values(dense.rows.Row(i))...)
		before = append(before, values)
	}
	admitted := func(i int) bool { return dense.layout.Stats(dense.rows.Row(i)).Count >= d.min }
	var logits [2][]float32
	for n, x := range []*bench{d.decayed, dense} {
		if err := x.engine.Train(engine.Batch{Batch: b}, func(r *engine.Result) error {
			logits[n] = append([]float32(nil), r.Logits...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, "logits", logits[0], logits[1])
	m := d.schedule.Factor(dense.state.Step)
	for i, values := range before {
		if !admitted(i) {
			continue
		}
		now, state := dense.layout.Values(dense.rows.Row(i)), dense.layout.State(dense.rows.Row(i))
		for v := range now {
			rate := d.rates.Rest
			if v == 0 {
				rate = d.rates.First
			}
			by := d.rates.By
			if by == nil {
				now[v] -= float32(float64(values[v]) * rate * m)
				continue
			}
			words := by.Rest
			if v == 0 {
				words = by.First
			}
			now[v] *= float32(math.Pow(1-rate*m, 1/denominator(state, words)))
		}
	}
	for n, x := range []*bench{d.decayed, dense} {
		words := func() (all []uint32) {
			for i := range x.pass.Keys {
				for _, v := range x.rows.Row(i) {
					all = append(all, math.Float32bits(v))
				}
			}
			return all
		}
		stored := words()
		if err := x.engine.Infer(engine.Batch{Batch: b}, func(r *engine.Result) error {
			logits[n] = append([]float32(nil), r.Logits...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i, w := range words() {
			if w != stored[i] {
				t.Fatal("inference writes rows")
			}
		}
	}
	compare(t, "logits of inference", logits[0], logits[1])
	view := decay.NewTable(d.decayed.table, d.decayed.state.Decay.At(d.decayed.state.Step))
	settled := make([]float32, view.Layout().Words())
	for i := range before {
		view.Settle(settled, d.decayed.rows.Row(i))
		compare(t, fmt.Sprint("row ", i), view.Layout().Values(settled), dense.layout.Values(dense.rows.Row(i)))
	}
}

// denominator is the root of the mean of a row's accumulators.
func denominator(state []float32, a optim.Accumulators) float64 {
	sum := 0.0
	for _, x := range state[a.From:a.To] {
		sum += float64(x) / float64(a.To-a.From)
	}
	return math.Sqrt(sum) + a.Epsilon
}

// keepUsed leaves only those rows in a mini-batch that it uses.
func keepUsed(b *reader.Batch) {
	at := map[int32]int32{}
	b.Rows = b.Rows[:0]
	for i, row := range b.Index {
		if _, ok := at[row]; !ok {
			at[row] = int32(len(b.Rows))
			b.Rows = append(b.Rows, row)
		}
		b.Index[i] = at[row]
	}
	b.Invert(len(b.Rows))
}

func compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 2e-4*max(0.1, math.Abs(float64(want[i]))) {
			t.Fatalf("%s: %v, want %v (%s)", what, got, want, kernel.Level())
		}
	}
}
