package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
)

// withLabel writes the header and those lines of the evaluation data of the test job that have a
// label, and returns the new file.
func withLabel(t *testing.T, label string) string {
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(log, "eval.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(data)) {
		if lines.Len() == 0 || strings.HasPrefix(line, label+"\t") {
			lines.WriteString(line)
		}
	}
	file := filepath.Join(t.TempDir(), "eval.tsv")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDivergedModelsAreNotCommitted checks that a model whose predictions have become 0 and 1 ends
// the job, with and without evaluation data, even if all these data have the same label, and that
// the earlier model stays. With a setting, the same job commits the model that a run with this
// setting would have made, without training again.
func TestDivergedModelsAreNotCommitted(t *testing.T) {
	withoutClicks := "data.eval=[" + withLabel(t, "0") + "]"
	for name, set := range map[string][]string{
		"in memory":          {"data.eval=[LOG/eval.tsv]"},
		"no evaluation data": {"data.eval=[]"},
		"few steps":          {"data.eval=[]", "training.max_examples=1200"},
		"on SSD":             onSSD("data.eval=[]"),
		"best epoch":         {"training.epochs=3", "training.early_stopping.metric=log_loss"},
		"no snapshots":       {"snapshots.every=none"},
		"without clicks":     {withoutClicks},
		"clicks only":        {"data.eval=[" + withLabel(t, "1") + "]"},
		"best, no clicks":    {withoutClicks, "training.epochs=2", "training.early_stopping.metric=log_loss"},
	} {
		t.Run(name, func(t *testing.T) {
			diverging := append(slices.Clip(set), "training.batch_size=16", "optimizer.rows.kind=sgd", "optimizer.rows.learning_rate=500", "optimizer.dense.kind=sgd", "optimizer.dense.learning_rate=500")
			want := train(t, job(t, "lr", append(slices.Clip(diverging), "training.accept_diverged=true")...)).Digest
			good := job(t, "lr", set...)
			before := train(t, good).Digest
			bad := job(t, "lr", append(diverging, "output.model_dir="+good.Output.ModelDir)...)
			kept := bad.Snapshots.Every != "none"
			for range 2 { // the second run does not train again
				_, err := Train(context.Background(), bad, quiet)
				if err == nil || errkind.Of(t.Context(), err) != errkind.Diverged || !strings.Contains(err.Error(), "training.accept_diverged") {
					t.Fatal(err)
				}
				var again *ResumableError
				if errors.As(err, &again) != kept || strings.Contains(err.Error(), "is kept") != kept {
					t.Errorf("what was trained is kept: %v, %v", err, kept)
				}
			}
			if after := testjobs.Digest(t, good); after != before {
				t.Errorf("the model before is %s, was %s", after, before)
			}
			m, err := modeldir.Open(good.Output.ModelDir)
			if err != nil || m.Number() != 1 {
				t.Errorf("%v, %v", m, err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			bad.Training.AcceptDiverged = true
			s := train(t, bad)
			if digest := testjobs.Digest(t, bad); digest != want || digest == before {
				t.Errorf("the diverged model is %s, want %s; the one before %s", digest, want, before)
			}
			if resumed := len(s.Resumed) > 0; resumed != kept {
				t.Errorf("went on at %+v", s.Resumed)
			}
		})
	}
}

// TestWorseThanConstant checks that a normalized entropy above 1 counts only if it cannot be due to
// chance.
func TestWorseThanConstant(t *testing.T) {
	nan := metrics.Value(math.NaN())
	for _, c := range []struct {
		examples int64
		rate     metrics.Value
		ne       metrics.Value
		want     bool
	}{
		{1e6, 0.5, 0.99, false}, {1e6, 0.5, 1.01, true}, {1e6, 0.002, 1.1, true}, {200, 0.5, 1.05, false}, {200, 0.5, 3, true},
		{2000, 0.0275, 1.13, false}, {2000, 0.0275, 4, true}, {50, 0, nan, false}, {50, 1, nan, false}, {0, nan, nan, false},
	} {
		p := float64(c.rate)
		r := &metrics.Report{Examples: c.examples, BaseRate: c.rate, NormalizedEntropy: c.ne}
		r.LogLoss = c.ne * metrics.Value(-p*math.Log(p)-(1-p)*math.Log(1-p))
		if got := worseThanConstant(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestWarningsOfTheFirstLook checks that the summary warns of numbers with a huge range and no
// transform, and of labels that are all the same.
func TestWarningsOfTheFirstLook(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("label,time,price,age,user,item\n")
	for i := range 500 {
		fmt.Fprintf(&text, "0,%d,%d,%d,u%d,i%d\n", 1700000000+i, -5000*i, i%90, i%5, i%3)
	}
	if err := os.WriteFile(filepath.Join(dir, "log.csv"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`
data:
  train: [%[1]s/log.csv]
  format: csv
  columns:
    - {name: label, role: label}
    - {name: time, role: dense}
    - {name: price, role: dense, transform: [log1p]}
    - {name: age, role: dense}
    - {name: user}
    - {name: item}
model: {kind: lr}
training: {batch_size: 64}
output: {model_dir: %[1]s/model}
`, dir)
	j, err := configs.Parse("job.yaml", []byte(file), configs.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	warned := strings.Join(train(t, j).Warnings, "\n")
	for text, want := range map[string]bool{"column time has values up to 1.7e+09": true, "column price": false, "column age": false, "no training example is positive": true} {
		if strings.Contains(warned, text) != want {
			t.Errorf("%q: want %v in\n%s", text, want, warned)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "model", failedSummaryName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestClassesOfAnEpochThatWasCutShort checks that training data count as having only one label only
// if all of them have it, and not because the last epoch ended at its first example.
func TestClassesOfAnEpochThatWasCutShort(t *testing.T) {
	for label, warned := range map[float64]bool{0: false, 1: true} { // of the second row
		j := biasJob(t, "lr", [][2]float64{{1, 1}, {label, 1}}, "training.max_examples=3", "training.epochs=2")
		if w := strings.Join(train(t, j).Warnings, "\n"); strings.Contains(w, "all training examples are positive") != warned {
			t.Errorf("labels 1 and %g: %s", label, w)
		}
	}
}

// TestOneLabel checks that a model of many training examples that all have the same label, as if
// the clicks were not joined, is not committed, unless a setting allows it. A model of few examples
// is.
func TestOneLabel(t *testing.T) {
	rows := make([][2]float64, manyExamples)
	for name, c := range map[string]struct {
		label, first float64
		examples     int
		set          []string
		refused      bool
	}{
		"no clicks":        {0, 0, manyExamples, nil, true},
		"clicks only":      {1, 1, manyExamples, nil, true},
		"one click":        {0, 1, manyExamples, nil, false},
		"few examples":     {0, 0, manyExamples - 1, nil, false},
		"that is accepted": {0, 0, manyExamples, []string{"training.accept_diverged=true"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range rows {
				rows[i] = [2]float64{c.label, 1}
			}
			rows[0][0] = c.first
			j := biasJob(t, "lr", rows[:c.examples], append(c.set, "training.batch_size=5000")...)
			s, err := Train(context.Background(), j, quiet)
			if refused := err != nil; refused != c.refused || refused && (errkind.Of(t.Context(), err) != errkind.Diverged || !strings.Contains(err.Error(), "check data.label; training.accept_diverged")) {
				t.Fatal(err)
			}
			if warned := err == nil && strings.Contains(strings.Join(s.Warnings, "\n"), "check data.label"); warned != (err == nil && c.label == c.first) {
				t.Errorf("%q", s.Warnings)
			}
		})
	}
}
