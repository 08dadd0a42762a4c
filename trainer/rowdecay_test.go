package trainer

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldiff"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/optim"
)

// decaying are overrides with which rows decay by 1 % in a step.
var decaying = []string{"optimizer.rows={kind: adagrad, learning_rate: 0.05, weight_decay: 0.2}", "data.shuffle_buffer=0"}

// TestDecayedRowsAreRead checks that evaluating the model gives the results that training measured
// at its end, in every value format and kind of table.
func TestDecayedRowsAreRead(t *testing.T) {
	for _, format := range sparsetable.ValueFormats() {
		set := append(slices.Clone(decaying), "sparse_table.value_format="+format)
		j := job(t, "deepfm", set...)
		s := train(t, j)
		if plain := train(t, job(t, "deepfm", "data.shuffle_buffer=0", "sparse_table.value_format="+format)); plain.Digest == s.Digest {
			t.Errorf("%s: weight decay changes nothing", format)
		}
		if got := train(t, job(t, "deepfm", onSSD(set...)...)); got.Digest != s.Digest || got.Eval.LogLoss != s.Eval.LogLoss {
			t.Errorf("%s: on SSD %s, in memory %s", format, got.Digest, s.Digest)
		}
		ev, err := load(t, j.Output.ModelDir).Evaluate(t.Context(), j.Data.Eval)
		if err != nil || ev.Metrics.LogLoss != s.Eval.LogLoss || ev.Metrics.AUC != s.Eval.AUC {
			t.Errorf("%s: evaluation has %+v, training had %+v, %v", format, ev.Metrics, s.Eval, err)
		}
	}
}

// TestRowsDecayWhileUnused checks that rows that a second night does not use are read afterwards
// with their values times the factors of its steps, while the table has their old values. Rates may
// change from night to night.
func TestRowsDecayWhileUnused(t *testing.T) {
	first := job(t, "fm", append(slices.Clone(decaying), "data.train=[LOG/train-0.tsv]")...)
	took := train(t, first).Steps
	before, stored := settledRows(t, first.Output.ModelDir)
	cases := map[string]struct {
		set    []string
		factor func(steps int) float64
		clocks bool
	}{
		"same rate":     {decaying, func(n int) float64 { return math.Pow(0.99, float64(n)) }, true},
		"other rate":    {[]string{"optimizer.rows={kind: adagrad, learning_rate: 0.1, weight_decay: 0.1}"}, func(n int) float64 { return math.Pow(0.99, float64(n)) }, true},
		"faster":        {[]string{"optimizer.rows={kind: adagrad, learning_rate: 0.1, weight_decay: 0.2}"}, func(n int) float64 { return math.Pow(0.98, float64(n)) }, true},
		"scheduled":     {append(slices.Clone(decaying), "optimizer.schedule={decay: exponential, decay_steps: 1, decay_rate: 0.5}"), func(n int) float64 { return halving(0.01, n) }, true},
		"no decay":      {[]string{"optimizer.rows={kind: adagrad, learning_rate: 0.05}"}, func(int) float64 { return 1 }, false},
		"another state": {[]string{"optimizer.rows={kind: sgd, learning_rate: 0.05, weight_decay: 0.2}"}, func(n int) float64 { return math.Pow(0.99, float64(n)) }, true},
	}
	for name, c := range cases {
		for _, on := range []func(...string) []string{func(set ...string) []string { return set }, onSSD} {
			j := job(t, "fm", on(append(slices.Clone(c.set), "data.train=[LOG/train-1.tsv.gz]", "training.warm_start="+first.Output.ModelDir)...)...)
			steps := int(train(t, j).Steps - took)
			after, now := settledRows(t, j.Output.ModelDir)
			unused := 0
			for key, values := range before {
				if now[key].stats != stored[key].stats {
					continue // the second night used it
				}
				unused++
				if c.clocks && name != "another state" && !slices.Equal(now[key].values, stored[key].values) {
					t.Fatalf("%s: a row that was not used was written", name)
				}
				for i, v := range values {
					if want := float64(v) * c.factor(steps); math.Abs(float64(after[key][i])-want) > 1e-6*math.Abs(want) {
						t.Fatalf("%s: value %d of row %x is %v, want %v after %d steps", name, i, key, after[key][i], want, steps)
					}
				}
			}
			if unused < 50 || steps < 20 {
				t.Errorf("%s: %d unused rows, %d steps: too few to show anything", name, unused, steps)
			}
			if l := load(t, j.Output.ModelDir); (l.Saved.RowDecay != "") != c.clocks {
				t.Errorf("%s: history %+v", name, l.Saved.RowDecay)
			}
		}
	}
}

// halving is the product of the factors of steps whose rate halves.
func halving(rate float64, steps int) float64 {
	product := 1.0
	for k := 1; k <= steps; k++ {
		product *= 1 - rate*math.Pow(0.5, float64(k))
	}
	return product
}

type storedRow struct {
	values []float32
	stats  sparsetable.RowStats
}

// TestTableL2AndWarmStarts checks that rows that a second night does not use are read afterwards
// with what every step of both nights has left of their values, whatever happens to their state.
func TestTableL2AndWarmStarts(t *testing.T) {
	held := []string{"optimizer.rows={kind: adagrad, learning_rate: 0.05, table_l2: 0.0005}", "data.shuffle_buffer=0"}
	first := job(t, "fm", append(slices.Clone(held), "data.train=[LOG/train-0.tsv]")...)
	took := train(t, first).Steps
	before, stored := settledRows(t, first.Output.ModelDir)
	states := rowStates(t, first.Output.ModelDir)
	for name, c := range map[string]struct {
		set   []string
		rate  float64 // of the second night
		alike bool    // all rows decay by it
	}{
		"same":          {held, 0.05 * 0.0005, false},
		"stronger":      {[]string{"optimizer.rows={kind: adagrad, learning_rate: 0.1, table_l2: 0.001}"}, 0.1 * 0.001, false},
		"weight decay":  {decaying, 0.01, true},
		"none":          {[]string{"optimizer.rows={kind: adagrad, learning_rate: 0.05}"}, 0, true},
		"another state": {[]string{"optimizer.rows={kind: adam}"}, 0, true},
	} {
		digests := map[string]bool{}
		for _, on := range []func(...string) []string{func(set ...string) []string { return set }, onSSD} {
			j := job(t, "fm", on(append(slices.Clone(c.set), "data.train=[LOG/train-1.tsv.gz]", "training.warm_start="+first.Output.ModelDir)...)...)
			s := train(t, j)
			digests[s.Digest] = true
			if ev, err := load(t, j.Output.ModelDir).Evaluate(t.Context(), j.Data.Eval); err != nil || ev.Metrics.LogLoss != s.Eval.LogLoss {
				t.Errorf("%s: evaluation has %+v, training had %+v, %v", name, ev.Metrics, s.Eval, err)
			}
			steps := float64(s.Steps - took)
			after, now := settledRows(t, j.Output.ModelDir)
			unused := 0
			for key, values := range before {
				if now[key].stats != stored[key].stats {
					continue // the second night used it
				}
				unused++
				for i, v := range values {
					power := steps
					if !c.alike {
						power /= denominator(states[key], i)
					}
					if want := float64(v) * math.Pow(1-c.rate, power); math.Abs(float64(after[key][i])-want) > 1e-6*math.Abs(want) {
						t.Fatalf("%s: value %d of row %x is %v, want %v after %v steps", name, i, key, after[key][i], want, steps)
					}
				}
			}
			if unused < 50 || steps < 20 {
				t.Errorf("%s: %d unused rows, %v steps: too few to show anything", name, unused, steps)
			}
		}
		if len(digests) != 1 {
			t.Errorf("%s: memory and SSD differ: %v", name, digests)
		}
	}
}

// TestTableL2WaitsForGradients checks rows whose optimizer state is reset by a warm start, or that
// get new values. They have no gradients by which the penalty could be divided, so they are not
// changed until they are used. If the penalty were divided only by epsilon, they would be zero
// after the first step.
func TestTableL2WaitsForGradients(t *testing.T) {
	held := "optimizer.rows={kind: adagrad, learning_rate: 0.05, table_l2: 0.0005}"
	for name, c := range map[string]struct {
		kind string
		set  string
	}{
		"another optimizer":           {"fm", "optimizer.rows={kind: rowwise_adagrad}"},
		"another optimizer, decaying": {"fm", "optimizer.rows={kind: adam, weight_decay: 0.01}"},
		"new values":                  {"lr", held},
		"without a penalty":           {"fm", "optimizer.rows={kind: adagrad, learning_rate: 0.05}"},
	} {
		first := job(t, c.kind, c.set, "data.train=[LOG/train-0.tsv]", "data.shuffle_buffer=0", "sparse_table.admission={min_occurrences: 2}")
		train(t, first)
		before, stored := settledRows(t, first.Output.ModelDir)
		digests := map[string]bool{}
		for _, on := range []func(...string) []string{func(set ...string) []string { return set }, onSSD} {
			j := job(t, "fm", on(held, "data.shuffle_buffer=0", "data.train=[LOG/train-1.tsv.gz]", "training.warm_start="+first.Output.ModelDir, "sparse_table.admission={min_occurrences: 2}")...)
			digests[train(t, j).Digest] = true
			after, now := settledRows(t, j.Output.ModelDir)
			unused := 0
			for key, values := range before {
				if now[key].stats != stored[key].stats {
					continue
				}
				unused++
				if name != "without a penalty" && !slices.Equal(after[key][:len(values)], values) {
					t.Fatalf("%s: row %x is %v, was %v", name, key, after[key], values)
				}
				for i, v := range after[key] {
					if math.Abs(float64(v)) < 1e-30 && (i >= len(values) || values[i] != 0) {
						t.Fatalf("%s: row %x is %v, was %v", name, key, after[key], values)
					}
				}
			}
			if unused < 50 {
				t.Errorf("%s: %d unused rows: too few to show anything", name, unused)
			}
		}
		if len(digests) != 1 {
			t.Errorf("%s: memory and SSD differ: %v", name, digests)
		}
	}
}

// TestTableL2WithoutGradients checks that a row of which all examples have weight 0 is not changed,
// on the host and on devices.
func TestTableL2WithoutGradients(t *testing.T) {
	rows := rowsOf(100, 100, 1, 1)
	for i := 0; i < len(rows); i += 5 { // those of one user
		rows[i][1] = 0
	}
	held := []string{"optimizer.rows={kind: adagrad, learning_rate: 0.05, table_l2: 0.01}", "model.embedding_dim=3"}
	for name, set := range map[string][]string{
		"host": nil, "devices": {"engine.kind=cuda", "engine.devices=[0, 1]"}, "rows on devices": {"engine.kind=cuda", "engine.devices=[0, 1]", "engine.embeddings=device"},
	} {
		j := biasJob(t, "fm", rows, append(set, held...)...)
		if set == nil {
			train(t, j)
		} else {
			p := smallDevices(testseed.Of(t), 2, 64<<20)
			if _, err := trainOn(t, j, p, nil); err != nil {
				t.Fatal(err)
			}
		}
		all, _ := settledRows(t, j.Output.ModelDir)
		for key, values := range all {
			if values[1] == 0 && values[2] == 0 && values[3] == 0 {
				t.Errorf("%s: row %x is %v", name, key, values)
			}
		}
		if len(all) != 5+3 {
			t.Errorf("%s: %d rows", name, len(all))
		}
	}
}

// denominator is that of value i of a row of fm: its first value is the linear weight. Where there
// was no gradient but 0, nothing shrinks.
func denominator(state []float32, i int) float64 {
	const epsilon = 1e-8
	of := state[1:]
	if i == 0 {
		of = state[:1]
	}
	sum := 0.0
	for _, s := range of {
		sum += float64(s)
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(sum/float64(len(of))) + epsilon
}

// rowStates are the states of a model's rows, without the clocks.
func rowStates(t *testing.T, dir string) map[uint64][]float32 {
	t.Helper()
	m, err := modeltable.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Model.Close()
	table, err := m.Model.OpenTable(t.Context(), m.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	states, l := map[uint64][]float32{}, table.Layout()
	for key, row := range tableRows(t, table) {
		state := l.State(row)
		states[key] = state[:len(state)-1]
	}
	return states
}

// settledRows are the values of a model's rows as they are read, and as they are stored.
func settledRows(t *testing.T, dir string) (map[uint64][]float32, map[uint64]storedRow) {
	t.Helper()
	m, err := modeltable.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Model.Close()
	table, err := m.Model.OpenTable(t.Context(), m.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	view, err := m.Settled(table)
	if err != nil {
		t.Fatal(err)
	}
	stored, l := map[uint64]storedRow{}, table.Layout()
	for key, row := range tableRows(t, table) {
		stored[key] = storedRow{l.Values(row), l.Stats(row)}
	}
	settled := map[uint64][]float32{}
	for key, row := range tableRows(t, view) {
		settled[key] = view.Layout().Values(row)
	}
	return settled, stored
}

// TestInspectAndDiffDecay checks that inspect and diff show rows as the model uses them.
func TestInspectAndDiffDecay(t *testing.T) {
	first := job(t, "fm", append(slices.Clone(decaying), "data.train=[LOG/train-0.tsv]")...)
	train(t, first)
	second := job(t, "fm", append(slices.Clone(decaying), "data.train=[LOG/train-1.tsv.gz]", "training.warm_start="+first.Output.ModelDir)...)
	train(t, second)
	rows, _ := settledRows(t, second.Output.ModelDir)
	squares, n := 0.0, 0
	for _, values := range rows {
		for _, v := range values {
			squares += float64(v) * float64(v)
			n++
		}
	}
	in, err := inference.Inspect(t.Context(), second.Output.ModelDir, true, testjobs.Quiet)
	if err != nil || math.Abs(in.Rows.ValueRMS-math.Sqrt(squares/float64(n))) > 1e-9 {
		t.Errorf("inspect: %+v, %v", in, err)
	}
	d, err := modeldiff.Compare(t.Context(), first.Output.ModelDir, second.Output.ModelDir, modeldiff.Options{MemoryBytes: 1 << 20, Examples: 10, Logger: quiet.Logger})
	if err != nil || d.Total.Moved != d.Total.Before {
		t.Errorf("diff: %d of %d rows have moved; all decay: %v", d.Total.Moved, d.Total.Before, err)
	}
}

// TestDecayAfterManySteps checks that a model that was trained for almost 2^32 steps continues with
// clocks that restart from the beginning, in both kinds of tables.
func TestDecayAfterManySteps(t *testing.T) {
	digests := map[string]bool{}
	for _, on := range []func(...string) []string{func(set ...string) []string { return set }, onSSD} {
		first := job(t, "fm", on(append(slices.Clone(decaying), "data.train=[LOG/train-0.tsv]")...)...)
		const steps = 1<<32 - 5
		addSteps(t, first.Output.ModelDir, steps-train(t, first).Steps)
		before, _ := settledRows(t, first.Output.ModelDir)
		second := job(t, "fm", on(append(slices.Clone(decaying), "data.train=[LOG/train-1.tsv.gz]", "training.warm_start="+first.Output.ModelDir)...)...)
		digests[train(t, second).Digest] = true
		l := load(t, second.Output.ModelDir)
		timeline, err := modeltable.RowDecay(l.Saved)
		if err != nil {
			t.Fatal(err)
		}
		if h := timeline.History(); h.Base != steps || l.Saved.Step <= steps {
			t.Errorf("step %d, history %+v", l.Saved.Step, h)
		}
		after, stored := settledRows(t, second.Output.ModelDir)
		factor := math.Pow(0.99, float64(l.Saved.Step-steps))
		for key, values := range before {
			if stored[key].stats.LastSeen > 1 {
				continue
			}
			for i, v := range values {
				if want := float64(v) * factor; math.Abs(float64(after[key][i])-want) > 1e-6*math.Abs(want) {
					t.Fatalf("value %d of row %x is %v, want %v", i, key, after[key][i], want)
				}
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("memory and SSD differ: %v", digests)
	}
}

// addSteps makes the model of a directory one that has taken more steps, in which rows did not decay.
func addSteps(t *testing.T, dir string, more int64) {
	t.Helper()
	m, err := modeltable.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Model.Close()
	timeline, err := modeltable.RowDecay(m.Model)
	if err != nil {
		t.Fatal(err)
	}
	next := m.Model.Manifest
	h, _ := timeline.History().Continued(next.Step, decay.Rates{}, optim.ScheduleConfig{})
	if timeline, err = decay.NewTimeline(h); err != nil {
		t.Fatal(err)
	}
	next.Step, next.RowDecay = next.Step+more, timeline.Record()
	table, err := sparsetable.Open(t.Context(), m.Options)
	if err != nil {
		t.Fatal(err)
	}
	p, err := table.Snapshot(t.Context(), next.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err := errors.Join(err, table.Close()); err != nil {
		t.Fatal(err)
	}
	next.TableSnapshot = info.ID
	text, err := json.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{dir, filepath.Join(dir, next.Generation)} {
		if err := os.WriteFile(filepath.Join(file, modeldir.ManifestName), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
