package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/forecast"
	"aibox/trainer/report"
)

const memoryJob = `
seed: 1
data:
  format: tsv
  header: true
  train: [train.tsv]
  eval: [eval.tsv]
  columns:
    - {name: label, role: label}
    - {name: I1, role: dense}
    - {name: I2, role: dense}
    - {name: user}
    - {name: item}
    - {name: shop}
    - {name: word}
# So small that 300,000 rows fill them.
sparse_table: {kind: ssd, memory_bytes: 64MiB}
pipeline: {read_ahead_bytes: 8MiB, chunk_bytes: 256KiB}
model: {kind: deepfm, embedding_dim: 16, hidden_layers: [64, 32]}
output: {model_dir: model, tensorboard: none}
generate:
  train_examples: 300000
  eval_examples: 1000
  dense_columns: 2
  fields:
    - {name: user, cardinality: 200000}
    - {name: item, cardinality: 50000}
    - {name: shop, cardinality: 3000}
    - {name: word, cardinality: 20000}
`

// inMemoryJob changes to a directory with the job and its data, and returns the path of the program.
func inMemoryJob(t *testing.T) (path string) {
	t.Helper()
	path = buildBinary(t)
	t.Chdir(t.TempDir())
	write(t, "job.yaml", memoryJob)
	ok(t, "generate", "job.yaml")
	return path
}

// summaryOf returns the summary that a job has written into a model directory.
func summaryOf(t *testing.T, dir string) (s report.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "summary.json"))), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeLongLines writes rows of 500,000 feature values, which are 5 MB of text each.
func writeLongLines(t *testing.T, name string) {
	t.Helper()
	var b bytes.Buffer
	for row := range 40 {
		fmt.Fprint(&b, row&1)
		for i := range 500_000 {
			fmt.Fprintf(&b, " %d:1", row*17+3*i)
		}
		b.WriteByte('\n')
	}
	write(t, name, b.String())
}

// TestForecastOfMemory checks that `config show` says how much memory a job takes at most, and that
// the job takes nearly as much, with few and with many data, for both kinds of table, and for jobs
// that use memory for different purposes.
func TestForecastOfMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains sixteen models, most of them over 300,000 rows")
	}
	path := inMemoryJob(t)
	ok(t, "generate", "job.yaml", "--set", "data.train=[few.tsv]", "--set", "generate.train_examples=3000")
	ok(t, "convert", "--from", "train.tsv", "--to", "train.parquet", "--job", "job.yaml")
	ok(t, "convert", "--from", "train.tsv", "--to", "train.tsv.gz", "--job", "job.yaml")
	writeLongLines(t, "long.svm")
	defaults := []string{"pipeline={}", "sparse_table.memory_bytes=64MiB"}
	inMemory := []string{"pipeline={}", "sparse_table={kind: memory}"}
	with := func(set []string, more ...string) []string { return append(slices.Clone(set), more...) }
	for name, set := range map[string][]string{
		"small queues":               {},
		"SSD, few rows":              with(defaults, "data.train=[few.tsv]"),
		"SSD, many rows":             defaults,
		"SSD, default budget":        {"pipeline={}", "sparse_table={kind: ssd}"},
		"memory, few rows":           with(inMemory, "data.train=[few.tsv]"),
		"memory, many rows":          inMemory,
		"memory, several epochs":     with(inMemory, "training.epochs=3"),
		"memory, many rows, Parquet": with(inMemory, "data={train: [train.parquet], format: parquet, columns: [{name: label, role: label}, {name: I1, role: dense}, {name: I2, role: dense}, {name: user}, {name: item}, {name: shop}, {name: word}]}"),
		"memory, many rows, gzip":    with(inMemory, "data.train=[train.tsv.gz]"),
		"many rows to evaluate":      with(inMemory, "data.train=[few.tsv]", "data.eval=[train.tsv]"),
		"long lines":                 with(inMemory, "data={train: [long.svm], format: libsvm, max_line_bytes: 32MiB, columns: [{name: features}]}", "training.batch_size=4", "model={kind: lr}"),
		"few negatives":              with(inMemory, "data.negative_sampling=0.05"),
		"few examples of many":       with(inMemory, "data.limit=1000", "data.eval=[]"),
		"large mini-batches":         {"sparse_table.memory_bytes=96MiB", "training.batch_size=8192", "pipeline.batches_per_pass=2", "model.hidden_layers=[512, 256]"},
		"large dense network":        {"model.hidden_layers=[4096, 1024]", "optimizer.dense.kind=adam", "training.max_examples=20000"},
		"in bf16":                    {"model.hidden_layers=[2048, 1024]", "training.batch_size=4096", "pipeline.batches_per_pass=2", "training.max_examples=20000", "engine.precision=bf16"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"job.yaml"}
			for _, s := range append(set, "training.accept_diverged=true") { // a few steps of a large network
				args = append(args, "--set", s)
			}
			job, err := configs.Load("job.yaml", configs.LoadOptions{Set: set})
			if err != nil {
				t.Fatal(err)
			}
			size, err := forecast.SampleData(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			m, err := forecast.ForHost(job, size)
			if err != nil {
				t.Fatal(err)
			}
			if text := ok(t, append([]string{"config", "show"}, args...)...); !strings.Contains(text, "# Memory of the process") || !strings.Contains(text, "of data.train") {
				t.Errorf("config show says nothing of memory, or not from what that was computed:\n%s", text)
			}
			b := &binary{t, path}
			if o := b.run(append([]string{"train"}, args...)...); o.code != exitDone {
				t.Fatalf("exit %d: %s", o.code, o.stderr)
			}
			s := summaryOf(t, "model")
			ratio := float64(m.Process) / float64(s.PeakMemoryBytes)
			t.Logf("ratio %.2f; of %+v, forecast %+v, taken %+v", ratio, size, m, s.Memory)
			// It is from 1.0 to 1.6, by when the garbage collector begins and how long it takes.
			if ratio < 0.85 || ratio > 1.9 {
				t.Errorf("a forecast of %d bytes, %d were taken", m.Process, s.PeakMemoryBytes)
			}
			if s.Memory.Process != s.PeakMemoryBytes || s.Memory.Passes == 0 || s.Memory.Engine == 0 || s.Memory.Dense == 0 || s.Memory.Table == 0 {
				t.Errorf("%+v", s.Memory)
			}
		})
	}
}

// TestForecastOfDefaultBudget checks that a table on SSD has a budget even if the job file sets
// none, and that it is part of the forecast; a table in memory grows with its rows. That also holds
// if nothing is known of the data, and the forecast says that it is based only on the job file.
func TestForecastOfDefaultBudget(t *testing.T) {
	inSmallJob(t)
	text := ok(t, "config", "show", "job.yaml", "--set", "sparse_table.kind=ssd", "--set", "data.train=[absent.tsv]")
	if !strings.Contains(text, "table 256.0 MiB") || !strings.Contains(text, "the job file alone") || !strings.Contains(text, "cannot be read") || strings.Contains(text, "grows with the rows") {
		t.Errorf("config show of a table on SSD ends with %s", text[strings.Index(text, "# Memory"):])
	}
	if text := ok(t, "config", "show", "job.yaml", "--set", "data.train=[hdfs://nowhere:1/x]"); !strings.Contains(text, "the job file alone") || !strings.Contains(text, "grows with the rows") {
		t.Errorf("config show of a table in memory ends with %s", text[strings.Index(text, "# Memory"):])
	}
}

// TestNetworkTooLarge checks the forecast for a network that is too large for the machine. Making
// it does not take that memory, and training says at once that the network does not fit.
func TestNetworkTooLarge(t *testing.T) {
	inSmallJob(t)
	large := []string{"job.yaml", "--set", "model.hidden_layers=[" + strings.Repeat("65536,", 32) + "1]"}
	if text := ok(t, append([]string{"config", "show"}, large...)...); !strings.Contains(text, "make the layers of the model fewer or narrower") {
		t.Errorf("config show ends with %s", text[strings.Index(text, "# Memory"):])
	}
	o := aibox(append([]string{"train"}, large...)...)
	if o.code != exitJob || !strings.Contains(o.stderr, "make the layers of the model fewer or narrower") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
