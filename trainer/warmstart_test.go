package trainer

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/report"
	"aibox/trainer/warmstart"
)

// halves are two nights over the halves of the log.
func firstNight(t *testing.T, kind string, set ...string) (dir, digest string) {
	j := job(t, kind, append(set, "data.train=[LOG/train-0.tsv]", "data.shuffle_buffer=0")...)
	s := train(t, j)
	return j.Output.ModelDir, s.Digest
}

// TestWarmStartGoesOnWhereItStopped: two nights of one file each are the same
// steps as one night over both, so the same model, optimizer state included.
func TestWarmStartGoesOnWhereItStopped(t *testing.T) {
	for kind, format := range map[string]string{"dlrm": "float32", "dcn_v2": "float32", "wide_deep": "float16", "deepfm": "bfloat16"} {
		set := []string{"sparse_table.value_format=" + format,
			"data.shuffle_buffer=0", "optimizer.dense.kind=adam", "optimizer.rows={kind: adam, learning_rate: 0.01, weight_decay: 0.3}",
			"model.initial_bias=-1",                                                                    // by itself, each run would look at its first examples
			"data.columns[2].transform=[log1p]", "sparse_table.show_decay=1", "training.batch_size=60", // 1,500 rows are 25 whole mini-batches
		}
		if kind == "dlrm" {
			set = append(set, "model.bottom_layers=[8, 4]", bf16)
		}
		if kind != "deepfm" {
			set = append(set, averaging)
		}
		whole := job(t, kind, set...)
		train(t, whole)
		first := job(t, kind, append(slices.Clone(set), "data.train=[LOG/train-0.tsv]")...)
		train(t, first)
		second := job(t, kind, append(slices.Clone(set), "data.train=[LOG/train-1.tsv.gz]")...)
		second.Training.WarmStart = first.Output.ModelDir
		train(t, second)
		a, b := load(t, whole.Output.ModelDir), load(t, second.Output.ModelDir)
		if a.Saved.Step != b.Saved.Step {
			t.Fatalf("%s: steps %d and %d", kind, a.Saved.Step, b.Saved.Step)
		}
		for _, x := range a.Saved.Dense {
			y := b.Saved.Tensor(x.Name)
			if y == nil || !slices.Equal(x.Data, y.Data) {
				t.Errorf("%s: tensor %s differs between one night and two", kind, x.Name)
			}
		}
		layout := a.Table.Layout()
		rows := tableRows(t, b.Table)
		err := a.Table.Scan(t.Context(), func(key uint64, row []float32) error {
			// Last-seen differs by the night; all before it must not.
			n := layout.Words() - 2
			if !sameWords(row[:n], rows[key][:n]) {
				t.Errorf("%s: row %x differs between one night and two: %v and %v", kind, key, row, rows[key])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sameWords compares words of rows, which need not be numbers.
func sameWords(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func tableRows(t *testing.T, table sparsetable.Table) map[uint64][]float32 {
	t.Helper()
	rows := make(map[uint64][]float32)
	err := table.Scan(t.Context(), func(key uint64, row []float32) error {
		rows[key] = slices.Clone(row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestWarmStartWithAnAddedField: what the two models share is taken over by
// name, the rest starts fresh. An empty second night shows what was taken over:
// its only mini-batch has learning rate 0.
func TestWarmStartWithAnAddedField(t *testing.T) {
	still := []string{ // trains nothing
		"optimizer.schedule={warmup_steps: 1000000}", "data.limit=64",
	}
	for kind, towers := range map[string][2]string{
		"aibox": {
			"model.towers=[{name: a, dense: [a], layers: [8, 4]}]",
			"model.towers=[{name: a, dense: [a], layers: [8, 4]}, {name: b, dense: [b], layers: [6, 4]}]",
		},
		"dlrm":      {"model.bottom_layers=[8, 4]", "model.bottom_layers=[8, 4]"},
		"wide_deep": {"model.hidden_layers=[8]", "model.hidden_layers=[8]"},
		"dcn":       {"model.hidden_layers=[8]", "model.hidden_layers=[8]"},
		"dcn_v2":    {"model.hidden_layers=[8]", "model.hidden_layers=[8]"},
	} {
		t.Run(kind, func(t *testing.T) {
			before := []string{"data.columns[5].role=ignore", towers[0]} // without item
			if kind == "aibox" {
				before = append(before, "data.columns[3]={name: D3, role: ignore}") // and without D3
			}
			dir, _ := firstNight(t, kind, before...)
			old := load(t, dir)
			j := job(t, kind, append(still, towers[1])...)
			j.Training.WarmStart = dir
			train(t, j)
			now := load(t, j.Output.ModelDir)

			oldParams := make(map[string]int)
			for i, p := range old.Network.Params() {
				oldParams[p.Name] = i
			}
			taken := 0
			for _, p := range now.Network.Params() {
				i, ok := oldParams[p.Name]
				if !ok {
					if !strings.Contains(p.Name, "tower/b") {
						t.Errorf("parameter %s is new", p.Name)
					}
					continue
				}
				o := old.Network.Params()[i]
				m, err := warmstart.MatchAxes(p.Name, o.Shape, old.Network.Axes(o.Name), p.Shape, now.Network.Axes(p.Name))
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Clone(p.Data)
				warmstart.Copy(m, want, o.Data)
				for k := range want {
					// One step at a millionth of the learning rate moves by less.
					if d := math.Abs(float64(want[k] - p.Data[k])); d > 1e-6 {
						t.Fatalf("parameter %s[%d] is %g, was %g", p.Name, k, p.Data[k], want[k])
					}
				}
				taken += len(p.Data) - m.Fresh
				if m.Fresh == len(p.Data) {
					t.Errorf("nothing of parameter %s was taken over", p.Name)
				}
			}
			total := 0
			for _, p := range old.Network.Params() {
				total += len(p.Data)
			}
			if taken != total {
				t.Errorf("%d of the earlier model's %d dense values were taken over", taken, total)
			}
			rows := tableRows(t, now.Table)
			layout := old.Table.Layout()
			for key, row := range tableRows(t, old.Table) {
				got := rows[key]
				if got == nil {
					t.Fatalf("row %x is gone", key)
				}
				for k, v := range layout.Values(row) {
					if d := math.Abs(float64(v - got[k])); d > 1e-4 {
						t.Fatalf("row %x value %d is %g, was %g", key, k, got[k], v)
					}
				}
			}
		})
	}
}

func TestWarmStartRefusesWhatCannotBeTakenOver(t *testing.T) {
	dir, _ := firstNight(t, "deepfm", "model.hidden_layers=[8]")
	for what, set := range map[string]string{
		"layer sizes": "model.hidden_layers=[9]",
	} {
		j := job(t, "deepfm", "model.hidden_layers=[8]", set)
		j.Training.WarmStart = dir
		if _, err := Train(t.Context(), j, quiet); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestWarmStartFromAnotherKindOfModel(t *testing.T) {
	dir, _ := firstNight(t, "fm")
	j := job(t, "deepfm", "data.limit=64", "optimizer.schedule={warmup_steps: 1000000}")
	j.Training.WarmStart = dir
	train(t, j)
	old, now := load(t, dir), load(t, j.Output.ModelDir)
	rows := tableRows(t, now.Table)
	for key, row := range tableRows(t, old.Table) {
		for k, v := range old.Table.Layout().Values(row) {
			if d := math.Abs(float64(v - rows[key][k])); d > 1e-4 {
				t.Fatalf("row %x value %d is %g, was %g", key, k, rows[key][k], v)
			}
		}
	}
}

// TestWarmStartBetweenCrossNetworks: the cross weights of dcn and of dcn_v2 have the same names and
// other shapes. They start fresh, and the deep network, which both have, is taken over.
func TestWarmStartBetweenCrossNetworks(t *testing.T) {
	for _, kinds := range [][2]string{{"dcn", "dcn_v2"}, {"dcn_v2", "dcn"}} {
		dir, _ := firstNight(t, kinds[0])
		j := job(t, kinds[1], "data.limit=64", "optimizer.schedule={warmup_steps: 1000000}")
		j.Training.WarmStart = dir
		train(t, j)
		old, now := load(t, dir), load(t, j.Output.ModelDir)
		of := func(l *inference.Model, name string) []float32 {
			for _, p := range l.Network.Params() {
				if p.Name == name {
					return p.Data
				}
			}
			t.Fatalf("no parameter %s", name)
			return nil
		}
		before := of(old, "deep/0/weight")
		for i, v := range of(now, "deep/0/weight") {
			if d := math.Abs(float64(v - before[i])); d > 1e-4 {
				t.Fatalf("from %s to %s: weight %d of the deep network is %g, was %g", kinds[0], kinds[1], i, v, before[i])
			}
		}
	}
}

// TestRowsAgeFromRunsToDates: rows that runs without a date have trained are as many days old as
// runs ago, also once the job has a date and when it has none any more, and keep all else.
func TestRowsAgeFromRunsToDates(t *testing.T) {
	for name, set := range map[string][]string{
		"in memory": nil, "on SSD": onSSD(), "another format": {"sparse_table.value_format=bfloat16"}, "decay": {"optimizer.rows.weight_decay=0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			const today = 20_000
			run := func(limit, from string, dated bool, set ...string) *inference.Model {
				j := job(t, "lr", append(set, "data.train=[LOG/train-0.tsv]", "data.shuffle_buffer=0", "data.limit="+limit, "data.columns[2].transform=[log1p]", "training.accept_diverged=true")...)
				j.Dated, j.Date = dated, time.Unix(today*24*60*60, 0).UTC()
				j.Training.WarmStart = from
				train(t, j)
				return load(t, j.Output.ModelDir)
			}
			first := run("1000", "", false, slices.DeleteFunc(slices.Clone(set), func(s string) bool { return strings.Contains(s, "value_format") })...)
			second := run("100", first.Saved.Dir, false, set...)
			third := run("10", second.Saved.Dir, true, append(slices.Clone(set), "sparse_table.expiry.unseen_days=2")...)
			fourth := run("1", third.Saved.Dir, false, append(slices.Clone(set), "sparse_table.show_decay=1")...)
			layout, before := third.Table.Layout(), tableRows(t, second.Table)
			days := map[uint32]int{}
			for key, row := range tableRows(t, third.Table) {
				st := layout.Stats(row)
				days[st.LastSeen]++
				if st.LastSeen == today {
					continue
				}
				same := slices.Clone(before[key])
				old := layout.Stats(same)
				old.LastSeen += today - 3
				layout.SetStats(same, old)
				if !sameWords(row, same) {
					t.Fatalf("row %x is %v, was %v", key, row, before[key])
				}
			}
			if len(days) != 3 || days[today] == 0 || days[today-1] == 0 || days[today-2] == 0 || days[today-1]+days[today-2]+days[today] != len(before) {
				t.Errorf("rows by day: %v, want all %d", days, len(before))
			}
			if fourth.Saved.Day != today+1 {
				t.Errorf("without a date the day is %d", fourth.Saved.Day)
			}
		})
	}
}

// TestRowsAgeByTheDate: shows decay by day, and rows unseen for too long go.
func TestRowsAgeByTheDate(t *testing.T) {
	aging := []string{"sparse_table.show_decay=0.5", "sparse_table.expiry.unseen_days=2", "data.columns[2].transform=[log1p]"}
	night := func(day int, limit, from string) (*report.Summary, *inference.Model) {
		j := job(t, "lr", append(aging, "data.train=[LOG/train-0.tsv]", "data.shuffle_buffer=0", "data.limit="+limit)...)
		j.Dated, j.Date = true, time.Date(2026, time.November, 20+day, 0, 0, 0, 0, time.UTC)
		j.Training.WarmStart = from
		s := train(t, j)
		return s, load(t, j.Output.ModelDir)
	}
	_, first := night(0, "1000", "")
	s, second := night(2, "10", first.Saved.Dir)
	if s.ExpiredRows != 0 {
		t.Errorf("%d rows expired after 2 days", s.ExpiredRows)
	}
	layout := first.Table.Layout()
	old := tableRows(t, first.Table)
	decayed := 0
	for key, row := range tableRows(t, second.Table) {
		st, was := layout.Stats(row), layout.Stats(old[key])
		if st.LastSeen == was.LastSeen {
			continue // not seen on the second day: untouched
		}
		decayed++
		if added := st.Show - was.Show/4; added < 1 || added > 20 || added != float32(math.Trunc(float64(added))) {
			t.Errorf("show %g after %g two days before: not a quarter of it plus a count", st.Show, was.Show)
		}
	}
	if decayed == 0 {
		t.Error("no row was seen on both days")
	}
	s, third := night(3, "10", second.Saved.Dir)
	if s.ExpiredRows == 0 || s.Table.Rows != int64(decayed) {
		t.Errorf("on the third day %d rows expired and %d are left, want the %d of the second day", s.ExpiredRows, s.Table.Rows, decayed)
	}
	for key, row := range tableRows(t, third.Table) {
		if st := layout.Stats(row); third.Saved.Day-st.LastSeen > 2 {
			t.Errorf("row %x was last seen %d days ago", key, third.Saved.Day-st.LastSeen)
		}
	}
	j := job(t, "lr", append(aging, "training.warm_start="+first.Saved.Dir)...)
	if _, err := Train(t.Context(), j, quiet); err == nil || !strings.Contains(err.Error(), "date") {
		t.Errorf("an undated job after a dated one: %v", err)
	}
}

// TestWarmStartKeepsDimensions: a model whose rows begin with a linear weight and
// one without it share the embeddings value by value, and what stands on them.
func TestWarmStartKeepsDimensions(t *testing.T) {
	for _, c := range []struct{ from, to, layer string }{
		{"fm", "dlrm", ""}, {"deepfm", "dcn", "deep/0/weight"}, {"dcn_v2", "wide_deep", "deep/0/weight"},
	} {
		set := []string{"data.limit=64", "optimizer.schedule={warmup_steps: 1000000}"}
		deep := []string{}
		if c.layer != "" {
			deep = append(deep, "model.hidden_layers=[8]")
		}
		dir, _ := firstNight(t, c.from, deep...)
		if c.to == "dlrm" {
			deep = append(deep, "model.bottom_layers=[8, 4]")
		}
		j := job(t, c.to, append(set, deep...)...)
		j.Training.WarmStart = dir
		train(t, j)
		old, now := load(t, dir), load(t, j.Output.ModelDir)
		const dim = 4
		oldLayout, layout := old.Table.Layout(), now.Table.Layout()
		skipOld, skip := oldLayout.ValueDim-dim, layout.ValueDim-dim
		rows := tableRows(t, now.Table)
		for key, row := range tableRows(t, old.Table) {
			for k, v := range oldLayout.Values(row)[skipOld:] {
				if got := layout.Values(rows[key])[skip+k]; math.Abs(float64(v-got)) > 1e-4 {
					t.Fatalf("%s to %s: dimension %d of row %x is %g, was %g", c.from, c.to, k, key, got, v)
				}
			}
		}
		if c.layer == "" {
			continue
		}
		weights := func(l *inference.Model) map[string][]float32 {
			out := make(map[string][]float32)
			for _, p := range l.Network.Params() {
				if p.Name == c.layer {
					for i, name := range l.Network.Axes(p.Name)[0] {
						out[name] = p.Data[i*p.Shape[1] : (i+1)*p.Shape[1]]
					}
				}
			}
			return out
		}
		before, after := weights(old), weights(now)
		shared := 0
		for name, w := range before {
			for k, v := range after[name] {
				shared++
				if math.Abs(float64(v-w[k])) > 1e-4 {
					t.Fatalf("%s to %s: weight %d of %s is %g, was %g", c.from, c.to, k, name, v, w[k])
				}
			}
		}
		if want := 4 * dim * 8; shared < want { // four fields, eight units
			t.Errorf("%s to %s: %d weights of %s are shared, want %d at least", c.from, c.to, shared, c.layer, want)
		}
	}
}

// TestWarmStartWithAnotherActivation: it is logged, also where the earlier model is of a version
// whose embeddings had the activation of the hidden layers.
func TestWarmStartWithAnotherActivation(t *testing.T) {
	first := job(t, "aibox", "model.embedding_activation=relu")
	train(t, first)
	saved := load(t, first.Output.ModelDir).Saved
	file := filepath.Join(saved.Dir, "job.yaml")
	text := strings.Replace(string(saved.Job), "embedding_activation: relu\n", "", 1)
	if len(text) == len(saved.Job) {
		t.Fatal("the job of the model has no embedding_activation")
	}
	text = strings.TrimRight(text, " ")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for set, warns := range map[string]bool{"model.embedding_activation=relu": false, "model.embedding_activation=identity": true, "model.embedding_dim=4": true} {
		var log strings.Builder
		j := job(t, "aibox", set, "data.limit=64", "training.accept_diverged=true", "training.warm_start="+first.Output.ModelDir)
		if _, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "another activation function") != warns {
			t.Errorf("%s: %s", set, log.String())
		}
	}
}
