// Package testjobs has a small job over a generated log for the tests of package trainer and the
// packages below it. The log is written once for all tests of a package.
package testjobs

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"aibox/configs"
	"aibox/internal/clicklog"
	"aibox/internal/generate"
	"aibox/internal/hdfstest"
	"aibox/reader"
	"aibox/reader/convert"
	"aibox/trainer/inference"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
)

// Text is a job over a small generated log, with multi-valued fields, dense columns in two groups,
// missing cells, and a last mini-batch that is not full.
const Text = `
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

var generator = generate.Config{
	Seed: 3, DenseColumns: 3, BaseRate: 0.3, LinearStrength: 1.2, InteractionStrength: 0.8, LatentDim: 3, MissingRate: 0.05,
	Fields: []generate.Field{
		{Name: "user", Cardinality: 2000, Skew: 0.8}, {Name: "item", Cardinality: 500, Skew: 1.1},
		{Name: "tags", Cardinality: 100, Skew: 0.7, MaxValues: 3}, {Name: "region", Cardinality: 20, Skew: 0.5},
	},
}

// Numbers of rows in the log.
const (
	TrainRows = 3000
	EvalRows  = 1000
)

// Log returns the directory of the generated log, which is written once for all tests.
var Log = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(Dir, "log")
	job, err := Parse("lr", []string{"data.train=[x]", "output.model_dir=y"})
	if err != nil {
		return "", err
	}
	schema, err := jobparts.Schema(job)
	if err != nil {
		return "", err
	}
	g, err := generate.New(generator)
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
		TrainRows: TrainRows, EvalRows: EvalRows, Days: 1,
	}, func(string, int64) {})
	return dir, err
})

// Parse parses the test job for a kind of model, with overrides.
func Parse(kind string, set []string) (*configs.Job, error) {
	return configs.Parse("test.yaml", []byte(strings.Replace(Text, "KIND", kind, 1)), configs.LoadOptions{Set: set})
}

// Job returns the test job for a kind of model, with overrides, in which MODEL stands for its model
// directory and LOG for that of the log.
func Job(t *testing.T, kind string, set ...string) *configs.Job {
	t.Helper()
	log, err := Log()
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
	j, err := Parse(kind, all)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Digest computes the digest of a job's model.
func Digest(t *testing.T, j *configs.Job) string {
	t.Helper()
	in, err := inference.Inspect(t.Context(), j.Output.ModelDir, false, Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return in.Digest
}

// Load opens a model directory, and closes it when the test ends.
func Load(t *testing.T, dir string, set ...string) *inference.Model {
	t.Helper()
	l, err := inference.Load(context.Background(), dir, configs.LoadOptions{Set: set}, Quiet)
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

// Dir is a directory that tests share until the last one has ended.
var Dir string

// Main runs the tests of a package. TestMain exits with its result.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "aibox-trainer-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	Dir = dir
	defer os.RemoveAll(dir)
	return hdfstest.Run(m)
}

// Quiet are options to load a model without a log.
var Quiet = inference.Options{Logger: slog.New(slog.DiscardHandler)}

// Kinds returns the kinds of models or, in short mode, every third of them.
func Kinds() (kinds []string) {
	for i, kind := range model.Kinds() {
		if !testing.Short() || i%3 == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Gzip compresses a file and truncates the result to keep(size) bytes.
func Gzip(t *testing.T, from string, keep func(size int) int) string {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "part.gz")
	if err := os.WriteFile(path, b.Bytes()[:keep(b.Len())], 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Parquet writes data of a test job as a Parquet file and returns its path.
func Parquet(t *testing.T, data func(*configs.Job) []string) string {
	t.Helper()
	text := Job(t, "lr")
	schema, err := jobparts.Schema(text)
	if err != nil {
		t.Fatal(err)
	}
	sources := jobsource.New(text, slog.New(slog.DiscardHandler))
	defer sources.Close()
	path := filepath.Join(t.TempDir(), "data.parquet")
	if _, err := convert.Run(t.Context(), convert.Options{
		From: reader.Options{Sources: sources, URIs: data(text), Schema: schema}, To: []string{path}, Format: reader.FormatParquet,
	}); err != nil {
		t.Fatal(err)
	}
	return path
}
