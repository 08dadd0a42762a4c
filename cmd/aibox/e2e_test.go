package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"aibox/trainer/inference"
)

// TestFromLogToPredictions does everything that a new user does, from the log to predictions.
func TestFromLogToPredictions(t *testing.T) {
	inSmallJob(t)
	ok(t, "config", "check", "job.yaml")

	o := aibox("train", "job.yaml", "--log-format", "json", "--log-level", "debug")
	if o.code != exitDone {
		t.Fatalf("train: exit %d: %s", o.code, o.stderr)
	}
	wantJSONLines(t, o.stderr)
	for _, part := range []string{"epoch 1 online", "epoch 1 eval", "EL+JL", "2000 good, 0 bad", "model/summary.json"} {
		if !strings.Contains(o.stdout, part) {
			t.Errorf("the summary lacks %q:\n%s", part, o.stdout)
		}
	}
	summary := summaryOf(t, "model")

	// Evaluating the model again gives the metrics of the job's own evaluation.
	var e inference.Evaluation
	if err := json.Unmarshal([]byte(ok(t, "eval", "--model-dir", "model", "--data", "eval.tsv", "--json")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Metrics.AUC != summary.Eval.AUC || e.Metrics.LogLoss != summary.Eval.LogLoss || e.Metrics.Examples != 500 {
		t.Errorf("eval says %+v, the job's summary %+v", e.Metrics, *summary.Eval)
	}
	if text := ok(t, "eval", "--model-dir", "model", "--data", "eval.tsv"); !strings.Contains(text, "normalized entropy") {
		t.Errorf("eval prints %s", text)
	}

	// Predictions are the same in CSV and in Parquet.
	ok(t, "predict", "--model-dir", "model", "--data", "eval.tsv", "--output", "p.csv", "--columns", "user,ad")
	ok(t, "predict", "--model-dir", "model", "--data", "eval.tsv", "--output", "p.parquet", "--columns", "user,ad")
	csv := read(t, "p.csv")
	if n := strings.Count(csv, "\n"); n != 501 || !strings.HasPrefix(csv, "user,ad,label,prediction\n") {
		t.Errorf("%d lines of predictions:\n%.200s", n, csv)
	}
	ok(t, "convert", "--from", "p.parquet", "--to", "again.csv", "--columns", "user,ad,label,prediction")
	if again := read(t, "again.csv"); again != csv {
		t.Errorf("predictions in Parquet differ:\n%.200s\n%.200s", again, csv)
	}

	// Another run of the job is the same model.
	ok(t, "train", "job.yaml", "--set", "output.model_dir=second", "--set", "pipeline.reader_threads=3")
	first, second := ok(t, "inspect", "--digest", "model"), ok(t, "inspect", "second", "--digest")
	if first != second || strings.TrimSpace(first) != summary.Digest {
		t.Errorf("digests %q and %q, summary %q", first, second, summary.Digest)
	}
	if text := ok(t, "inspect", "--digest", "--json", "model"); strings.Join(strings.Fields(text), "") != `{"digest":"`+summary.Digest+`"}` {
		t.Errorf("inspect --digest --json prints %s", text)
	}
	if text := ok(t, "inspect", "model"); !strings.Contains(text, "deepfm in model") || !strings.Contains(text, strings.TrimSpace(first)) {
		t.Errorf("inspect prints %s", text)
	}
	ok(t, "train", "job.yaml", "--set", "output.model_dir=third", "--set", "seed=2")
	if third := ok(t, "inspect", "--digest", "third"); third == first {
		t.Error("another seed gives the same model")
	}
}

// TestWrongData checks that input that does not match the job is not reported as a fault of aibox.
func TestWrongData(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	digest := ok(t, "inspect", "--digest", "model")
	ok(t, "generate", "job.yaml", "--output", "x.parquet", "--rows", "50", "--set", "data.format=parquet")
	write(t, "empty.tsv", "")
	header, _, _ := strings.Cut(read(t, "train.tsv"), "\n")
	write(t, "header.tsv", header+"\n")
	write(t, "other.tsv", "a\tb\n1\t2\n")
	write(t, "labels.tsv", strings.ReplaceAll(read(t, "eval.tsv"), "\n0\t", "\n7\t"))
	write(t, "plain.tsv.gz", read(t, "eval.tsv"))
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"train job.yaml --set data.train=[empty.tsv]", exitData, "empty"},
		{"train job.yaml --set data.train=[header.tsv]", exitData, "no examples"},
		{"train job.yaml --set data.train=[other.tsv]", exitData, "the header has no column"},
		{"train job.yaml --set data.train=[labels.tsv]", exitData, `data.label says which of them mean 1, as in "clicks > 0"`},
		{"train job.yaml --set data.train=[plain.tsv.gz]", exitLostData, "gzip"},
		{"train job.yaml --set data.train=[x.parquet]", exitData, "header"},
		{"train job.yaml --set data.train=[nosuch.tsv]", exitIO, "not found"},
		{"train job.yaml --set data.train=[nosuch*.tsv]", exitIO, "no file matches"},
		{"train job.yaml --set data.train=[s3://bucket/x.tsv]", exitUsage, "data is read from hdfs://"},
		{"train job.yaml --set output.model_dir=job.yaml", exitIO, "not a directory"},
		{"train job.yaml --set sparse_table.memory_bytes=4KiB", exitJob, "memory budget"},
		{"train job.yaml --set training.warm_start=model --set output.model_dir=warm --set model.hidden_layers=[3]", exitJob, "layer sizes must stay"},
		{"eval --model-dir model --data other.tsv", exitData, "the header has no column"},
		{"eval --model-dir model --data nosuch.tsv", exitIO, "not found"},
		{"eval --model-dir model --data eval.tsv --set model.hidden_layers=[3]", exitUsage, "cannot be overridden"},
		{"eval --model-dir model --data eval.tsv --set data.fromat=csv", exitUsage, "did you mean `format`?"},
		{"publish model", exitUsage, "name the remote directory with --to"},
		{"predict --model-dir model --data eval.tsv --output p.xlsx", exitUsage, "want a name that ends in"},
		{"predict --model-dir model --data eval.tsv --output p.csv --columns usr", exitUsage, "no column"},
		{"predict --model-dir model --data nosuch.tsv --output p.csv", exitIO, "not found"},
		{"convert --from x.parquet --from-format csv --to y.csv", exitData, "header"},
		{"convert --from eval.tsv --from-format parquet --to y.csv", exitData, "not a Parquet file"},
		{"convert --from eval.tsv --to y.csv --sort-by usr", exitUsage, "no column"},
		{"convert --from eval.tsv --to y.csv --columns usr", exitUsage, "no column"},
		{"convert --from empty.tsv --to y.csv", exitData, "empty"},
	} {
		o := aibox(strings.Fields(c.args)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.stderr) || strings.Contains(o.stderr, "bug in aibox") {
			t.Errorf("aibox %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
	}
	if again := ok(t, "inspect", "--digest", "model"); again != digest {
		t.Error("failed runs have changed the model")
	}
	if err := os.RemoveAll("warm"); err != nil { // holds a lock file, no model
		t.Fatal(err)
	}
	wantOnly(t, ".", "empty.tsv", "eval.tsv", "header.tsv", "job.yaml", "labels.tsv", "model", "other.tsv", "plain.tsv.gz", "train.tsv", "x.parquet")
}

func TestDamagedModel(t *testing.T) {
	inSmallJob(t)
	for _, c := range []struct {
		damage func() error
		stderr string
	}{
		{func() error { return os.WriteFile("model/MODEL.json", nil, 0o644) }, "damaged"},
		{func() error {
			return os.WriteFile("model/MODEL.json", []byte(`{"format_version":99,"aibox_version":"v9"}`), 0o644)
		}, "use a newer aibox"},
		{func() error { return os.WriteFile("model/gen-000001/statistics.json", []byte("{"), 0o644) }, "damaged"},
		{func() error { return os.Remove("model/gen-000001/job.yaml") }, "job.yaml"},
		{func() error { return os.RemoveAll("model/gen-000001/table") }, "table"},
	} {
		if err := os.RemoveAll("model"); err != nil {
			t.Fatal(err)
		}
		ok(t, "train", "job.yaml", "--set", "training.max_examples=64")
		if err := c.damage(); err != nil {
			t.Fatal(err)
		}
		if o := aibox("inspect", "model"); o.code != exitIO || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("want %q: exit %d: %s", c.stderr, o.code, o.stderr)
		}
	}
}

// TestInterruptedCommands checks that an interrupt is not reported as a failure, whatever a command
// is doing, and that no incomplete file remains.
func TestInterruptedCommands(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	for _, args := range []string{
		"train job.yaml --set output.model_dir=other",
		"eval --model-dir model --data eval.tsv",
		"predict --model-dir model --data eval.tsv --output p.csv",
		"generate job.yaml --output x.tsv",
		"convert --from eval.tsv --to x.csv",
		"convert --from eval.tsv --to x.csv --sort-by user",
		"inspect model",
	} {
		o := aiboxContext(ctx, strings.Fields(args)...)
		log, said := strings.CutSuffix(o.stderr, "aibox: interrupted\n")
		if o.code != exitInterrupted || !said || strings.Count(log, "\n") != strings.Count(log, "level=INFO") || o.stdout != "" {
			t.Errorf("aibox %s: exit %d: %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
	if err := os.RemoveAll("other"); err != nil {
		t.Fatal(err)
	}
	wantOnly(t, ".", "eval.tsv", "job.yaml", "model", "train.tsv")
}
