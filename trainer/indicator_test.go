package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/inference"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
)

// TestIndicatorsTellMissingValues trains on data in which only the empty cells, and not the numbers
// in the others, determine the label. Only models with indicators can learn that.
func TestIndicatorsTellMissingValues(t *testing.T) {
	var text strings.Builder
	text.WriteString("label,x,user,item\n")
	for i := range 4000 {
		label, x := i%2, ""
		if label == 0 {
			x = []string{"-1", "1"}[i/2%2] // with the mean of a missing cell
		}
		fmt.Fprintf(&text, "%d,%s,u%d,i%d\n", label, x, i/2%5, i/2%3)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.csv"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"indicator", "0"} {
		j, err := configs.Parse("job.yaml", fmt.Appendf(nil, `
data:
  train: [%[1]s/log.csv]
  eval: [%[1]s/log.csv]
  format: csv
  columns: [{name: label, role: label}, {name: x, role: dense, missing: %[2]s}, {name: user}, {name: item}]
model: {kind: fm}
optimizer: {dense: {learning_rate: 0.05}}
training: {batch_size: 32}
output: {model_dir: %[1]s/%[2]s}
`, dir, missing), configs.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if auc := float64(train(t, j).Eval.AUC); (auc > 0.99) != (missing == "indicator") {
			t.Errorf("missing: %s: AUC %v", missing, auc)
		}
	}
}

// TestIndicatorsOfTowers checks that a tower gets the indicators of its columns.
func TestIndicatorsOfTowers(t *testing.T) {
	j := job(t, "aibox", "data.columns[2].missing=0")
	p, err := jobparts.Make(j)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"D1", "D2", "D3", "D1.missing", "D3.missing"}; !slices.Equal(p.Spec.Dense, want) {
		t.Fatalf("%q, want %q", p.Spec.Dense, want)
	}
	want := []model.Tower{{Name: "a", Dense: []int{0, 1, 3}}, {Name: "b", Dense: []int{2, 4}}}
	for i, w := range want {
		if got := p.Spec.Towers[i]; got.Name != w.Name || !slices.Equal(got.Dense, w.Dense) {
			t.Errorf("%+v, want %+v", got, w)
		}
	}
}

// TestWarmStartChangesIndicators checks that the weights of what both models have are taken over,
// whether either of them has indicators, and that those of a new indicator are initialized.
func TestWarmStartChangesIndicators(t *testing.T) {
	without := []string{"data.columns[1].missing=0", "data.columns[2].missing=0", "data.columns[3].missing=0"}
	still := []string{"optimizer.dense.kind=sgd", "optimizer.dense.learning_rate=1e-9", "optimizer.rows.kind=sgd", "optimizer.rows.learning_rate=1e-9"}
	for _, kind := range model.Kinds() {
		first := job(t, kind, without...)
		train(t, first)
		second := job(t, kind, still...)
		second.Training.WarmStart = first.Output.ModelDir
		train(t, second)
		third := job(t, kind, slices.Concat(still, without)...)
		third.Training.WarmStart = second.Output.ModelDir
		train(t, third)
		a, b, c := load(t, first.Output.ModelDir), load(t, second.Output.ModelDir), load(t, third.Output.ModelDir)
		if got := len(b.Network.Spec().Dense); got != 6 {
			t.Fatalf("%s: %d dense features", kind, got)
		}
		for i, p := range a.Network.Params() {
			with, back := b.Network.Params()[i], c.Network.Params()[i]
			if len(with.Data) < len(p.Data) || !near(back.Data, p.Data) {
				t.Errorf("%s: %s is not what it was after a night with indicators", kind, p.Name)
			}
		}
		for _, l := range []*inference.Model{a, b, c} { // predictions need no more than the model
			if _, err := l.Evaluate(t.Context(), first.Data.Eval); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// near reports whether two parameters differ by less than nights without learning change them.
func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x-y < 1e-4 && y-x < 1e-4 })
}
