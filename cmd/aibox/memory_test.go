package main

import (
	"encoding/json"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer"
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

// TestForecastOfMemory: what `config show` says a job will take is near what the
// process takes, for jobs whose memory goes to different purposes.
func TestForecastOfMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains three models over 300,000 rows")
	}
	b := &binary{t, buildBinary(t)}
	t.Chdir(t.TempDir())
	write(t, "job.yaml", memoryJob)
	ok(t, "generate", "job.yaml")
	for name, set := range map[string][]string{
		"table on SSD":        {},
		"large mini-batches":  {"sparse_table.memory_bytes=96MiB", "training.batch_size=8192", "pipeline.batches_per_pass=2", "model.hidden_layers=[512, 256]"},
		"large dense network": {"model.hidden_layers=[4096, 1024]", "optimizer.dense.kind=adam", "training.max_examples=20000"},
		"in bf16":             {"model.hidden_layers=[2048, 1024]", "training.batch_size=4096", "pipeline.batches_per_pass=2", "training.max_examples=20000", "engine.precision=bf16"},
	} {
		args := []string{"job.yaml"}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		job, err := configs.Load("job.yaml", configs.LoadOptions{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		forecast, err := trainer.Forecast(job)
		if err != nil {
			t.Fatal(err)
		}
		if text := ok(t, append([]string{"config", "show"}, args...)...); !strings.Contains(text, "# Memory of the process") {
			t.Errorf("%s: config show says nothing of memory:\n%s", name, text)
		}
		if o := b.run(append([]string{"train"}, args...)...); o.code != exitDone {
			t.Fatalf("%s: exit %d: %s", name, o.code, o.stderr)
		}
		var s trainer.Summary
		if err := json.Unmarshal([]byte(read(t, "model/summary.json")), &s); err != nil {
			t.Fatal(err)
		}
		ratio := float64(forecast.Process) / float64(s.PeakMemoryBytes)
		t.Logf("%s: forecast %+v, taken %+v, ratio %.2f", name, forecast, s.Memory, ratio)
		if ratio < 0.7 || ratio > 3 {
			t.Errorf("%s: a forecast of %d bytes, %d were taken", name, forecast.Process, s.PeakMemoryBytes)
		}
		if s.Memory.Process != s.PeakMemoryBytes || s.Memory.Passes == 0 || s.Memory.Engine == 0 || s.Memory.Dense == 0 || s.Memory.Table == 0 {
			t.Errorf("%s: %+v", name, s.Memory)
		}
	}
}

// TestForecastOfDefaultBudget: a table on SSD has a budget also where the job file gives
// none, and it is part of the sum; a table in memory grows with the rows.
func TestForecastOfDefaultBudget(t *testing.T) {
	inSmallJob(t)
	text := ok(t, "config", "show", "job.yaml", "--set", "sparse_table.kind=ssd")
	if !strings.Contains(text, "table 256.0 MiB") || strings.Contains(text, "grows with the rows") {
		t.Errorf("config show of a table on SSD ends with %s", text[strings.Index(text, "# Memory"):])
	}
	if text := ok(t, "config", "show", "job.yaml"); !strings.Contains(text, "grows with the rows") {
		t.Errorf("config show of a table in memory ends with %s", text[strings.Index(text, "# Memory"):])
	}
}
