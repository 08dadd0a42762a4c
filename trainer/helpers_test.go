package trainer

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"aibox/configs"
	"aibox/internal/clicklog"
	"aibox/internal/generate"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
	"aibox/trainer/report"
)

// testJob is a job over a small generated log: multi-valued fields, dense
// columns in two groups, missing cells, a last mini-batch that is not full.
const testJob = `
name: test
seed: 7
data:
  format: tsv
  header: true
  shuffle_buffer: 500
  group_by: user
  columns:
    - {name: label, role: label}
    - {name: D1, role: dense, transform: [log1p], group: a}
    - {name: D2, role: dense, transform: [log1p, standardize], group: a}
    - {name: D3, role: dense, transform: [log1p], group: b}
    - {name: user}
    - {name: item}
    - {name: tags, separator: "|"}
    - {name: region}
model: {kind: KIND}
training: {batch_size: 64}
pipeline: {batches_per_pass: 4}
output: {tensorboard: none, log_every: 20}
`

var testGenerator = generate.Config{
	Seed: 3, DenseColumns: 3, BaseRate: 0.3, LinearStrength: 1.2, InteractionStrength: 0.8, LatentDim: 3, MissingRate: 0.05,
	Fields: []generate.Field{
		{Name: "user", Cardinality: 2000, Skew: 0.8}, {Name: "item", Cardinality: 500, Skew: 1.1},
		{Name: "tags", Cardinality: 100, Skew: 0.7, MaxValues: 3}, {Name: "region", Cardinality: 20, Skew: 0.5},
	},
}

const (
	testTrainRows = 3000
	testEvalRows  = 1000
)

// testLog writes the generated log once for all tests.
var testLog = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(logDir, "log")
	job, err := parseJob("lr", []string{"data.train=[x]", "output.model_dir=y"})
	if err != nil {
		return "", err
	}
	schema, err := jobparts.Schema(job)
	if err != nil {
		return "", err
	}
	g, err := generate.New(testGenerator)
	if err != nil {
		return "", err
	}
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	defer sources.Close()
	w, err := clicklog.New(g, sources, schema, 0)
	if err != nil {
		return "", err
	}
	_, err = w.WriteJob(context.Background(), clicklog.Plan{
		Train: []string{dir + "/train-0.tsv", dir + "/train-1.tsv.gz"}, Eval: []string{dir + "/eval.tsv"},
		TrainRows: testTrainRows, EvalRows: testEvalRows, Days: 1,
	}, func(string, int64) {})
	return dir, err
})

func parseJob(kind string, set []string) (*configs.Job, error) {
	return configs.Parse("test.yaml", []byte(strings.Replace(testJob, "KIND", kind, 1)), configs.LoadOptions{Set: set})
}

// job returns a test job of a kind of model with overrides, which may hold
// MODEL for its model directory and LOG for that of the log.
func job(t *testing.T, kind string, set ...string) *configs.Job {
	t.Helper()
	log, err := testLog()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	all := []string{
		"data.train=[LOG/train-0.tsv, LOG/train-1.tsv.gz]", "data.eval=[LOG/eval.tsv]", "output.model_dir=MODEL",
	}
	if kind != "lr" {
		all = append(all, "model.embedding_dim=4")
	}
	for i, s := range append(all, set...) {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "LOG", log), "MODEL", dir)
		if i < len(all) {
			all[i] = s
		} else {
			all = append(all, s)
		}
	}
	j, err := parseJob(kind, all)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

var quiet = Options{Logger: slog.New(slog.DiscardHandler), Version: "test"}

// train runs a job that must succeed. The digest is filled in where the job does
// someKinds are the kinds of models or, in short mode, every third of them.
func someKinds() (kinds []string) {
	for i, kind := range model.Kinds() {
		if !testing.Short() || i%3 == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// not compute it.
func train(t *testing.T, j *configs.Job) *report.Summary {
	t.Helper()
	s, err := Train(context.Background(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest == "" {
		s.Digest = digestOf(t, j)
	}
	return s
}

// digestOf computes the digest of a job's model.
func digestOf(t *testing.T, j *configs.Job) string {
	t.Helper()
	in, err := Inspect(context.Background(), j.Output.ModelDir, false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return in.Digest
}

// load opens a job's model directory.
func load(t *testing.T, dir string, set ...string) *Loaded {
	t.Helper()
	l, err := Load(context.Background(), dir, configs.LoadOptions{Set: set}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
