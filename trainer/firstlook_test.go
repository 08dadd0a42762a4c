package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/tensorfile"
)

// biasJob is a job on rows that are given as label and weight. Its training hardly changes the
// parameters.
func biasJob(t *testing.T, kind string, rows [][2]float64, set ...string) *configs.Job {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("label,weight,x,user,item\n")
	for i, row := range rows {
		fmt.Fprintf(&text, "%g,%g,%g,u%d,i%d\n", row[0], row[1], float64(i%7)/7, i%5, i%3)
	}
	if err := os.WriteFile(filepath.Join(dir, "log.csv"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	job := fmt.Sprintf(`
data:
  train: [%[1]s/log.csv]
  format: csv
  columns: [{name: label, role: label}, {name: weight, role: weight}, {name: x, role: dense}, {name: user}, {name: item}]
model: {kind: %[2]s}
optimizer: {dense: {kind: sgd, learning_rate: 1e-9}, rows: {kind: sgd, learning_rate: 1e-9}}
training: {batch_size: 8}
output: {model_dir: %[1]s/model}
`, dir, kind)
	j, err := configs.Parse("job.yaml", []byte(job), configs.LoadOptions{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// outputBias returns the output bias of a job's model.
func outputBias(t *testing.T, j *configs.Job) float64 {
	t.Helper()
	m, err := modeldir.Open(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // it is only read
	for _, name := range []string{"param/output/bias", "param/linear/bias"} {
		if i := slices.IndexFunc(m.Dense, func(t tensorfile.Tensor) bool { return t.Name == name }); i >= 0 {
			return float64(m.Dense[i].Data[0])
		}
	}
	t.Fatal("there is no output bias")
	return 0
}

// rowsOf returns that many positives and negatives, alternating as long as there are both.
func rowsOf(positives, negatives int, positiveWeight, negativeWeight float64) (rows [][2]float64) {
	for i := range max(positives, negatives) {
		if i < positives {
			rows = append(rows, [2]float64{1, positiveWeight})
		}
		if i < negatives {
			rows = append(rows, [2]float64{0, negativeWeight})
		}
	}
	return rows
}

// TestInitialBiasIsTheLogOdds checks that every kind of model predicts the share of the positives
// at the beginning.
func TestInitialBiasIsTheLogOdds(t *testing.T) {
	for _, kind := range model.Kinds() {
		j := biasJob(t, kind, rowsOf(20, 180, 1, 1))
		s := train(t, j)
		want := math.Log(20.5 / 180.5)
		if got := outputBias(t, j); math.Abs(got-want) > 1e-5 || s.InitialBias == nil || math.Abs(*s.InitialBias-want) > 1e-9 {
			t.Errorf("%s: the bias is %v, the summary says %v; want %v", kind, got, s.InitialBias, want)
		}
	}
}

// TestInitialBiasOfShares checks that weights count, and that the bias is finite if all labels are
// the same.
func TestInitialBiasOfShares(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][2]float64
		want float64
	}{
		{"weights", rowsOf(30, 90, 6, 1), math.Log((180 + 1.125) / (90 + 1.125))},
		{"small weights", rowsOf(30, 90, 1e-6, 1e-6), math.Log(30.5 / 90.5)},
		{"no positive", rowsOf(0, 200, 1, 1), math.Log(0.5 / 200.5)},
		{"no negative", rowsOf(200, 0, 3, 1), math.Log(200.5 / 0.5)},
	} {
		j := biasJob(t, "deepfm", c.rows)
		s := train(t, j)
		if got := outputBias(t, j); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%s: the bias is %v, the summary says %v; want %v", c.name, got, *s.InitialBias, c.want)
		}
	}
}

// TestInitialBiasIsTheSameEverywhere checks that the initial bias does not depend on threads,
// mini-batches, passes and the order in which examples are shuffled, but only on the examples that
// training keeps.
func TestInitialBiasIsTheSameEverywhere(t *testing.T) {
	rows := rowsOf(70, 333, 0.3, 1.7)
	want := *train(t, biasJob(t, "lr", rows)).InitialBias
	for _, set := range [][]string{
		{"training.batch_size=1"}, {"training.batch_size=1000"}, {"pipeline.batches_per_pass=1"}, {"pipeline.reader_threads=5"},
		{"data.shuffle_buffer=50"}, {"data.group_by=user"}, {"training.epochs=2"}, {"pipeline.chunk_bytes=64KiB"},
	} {
		if got := *train(t, biasJob(t, "lr", rows, set...)).InitialBias; got != want {
			t.Errorf("%v: %v, want %v", set, got, want)
		}
	}
	if got := *train(t, biasJob(t, "lr", rows, "data.limit=10")).InitialBias; got != *train(t, biasJob(t, "lr", rows[:10])).InitialBias {
		t.Errorf("with data.limit: %v", got)
	}
	s := train(t, biasJob(t, "lr", rows, "data.negative_sampling=0.1"))
	if got := *s.InitialBias; got < want+1.5 || got > want+3.5 {
		t.Errorf("%v with a tenth of the negatives, %v with all", got, want)
	}
	if got := s.Epochs[0].Online; math.Abs(float64(got.BaseRate)-float64(got.MeanPrediction)) > 0.1 {
		t.Errorf("predictions of %v at a base rate of %v", got.MeanPrediction, got.BaseRate)
	}
}

func TestInitialBiasIsGiven(t *testing.T) {
	for _, text := range []string{"0", "-2.5"} {
		j := biasJob(t, "dcn_v2", rowsOf(20, 180, 1, 1), "model.initial_bias="+text)
		train(t, j)
		want, _ := j.Model.InitialBias.Number()
		if got := outputBias(t, j); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestInitialBiasStaysAtAWarmStart checks that the model starts with the bias of the earlier one,
// unless that has none of the same name.
func TestInitialBiasStaysAtAWarmStart(t *testing.T) {
	first := biasJob(t, "fm", rowsOf(20, 180, 1, 1))
	train(t, first)
	second := biasJob(t, "fm", rowsOf(100, 100, 1, 1), "training.warm_start="+first.Output.ModelDir)
	if s := train(t, second); s.InitialBias != nil {
		t.Errorf("the summary says that the bias started at %v", *s.InitialBias)
	}
	if got, want := outputBias(t, second), outputBias(t, first); math.Abs(got-want) > 1e-4 {
		t.Errorf("%v after a warm start from %v", got, want)
	}
	other := biasJob(t, "deepfm", rowsOf(150, 50, 1, 1), "training.warm_start="+first.Output.ModelDir)
	s, err := Train(context.Background(), other, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Log(150.5 / 50.5); s.InitialBias == nil || math.Abs(outputBias(t, other)-want) > 1e-4 {
		t.Errorf("a new output layer has the bias %v, want %v", outputBias(t, other), want)
	}
}

// TestWeightsOfZero checks that no model is made if no example has a weight, as if there were no
// examples.
func TestWeightsOfZero(t *testing.T) {
	j := biasJob(t, "lr", rowsOf(20, 20, 0, 0))
	_, err := Train(t.Context(), j, quiet)
	if err == nil || errkind.Of(t.Context(), err) != errkind.Data || !strings.Contains(err.Error(), "data.train: the weights of all 40 examples, in column weight, are 0") {
		t.Errorf("%v", err)
	}
	if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
		t.Errorf("there is a model: %v", err)
	}
	train(t, biasJob(t, "lr", rowsOf(20, 20, 0, 1))) // some count
}
