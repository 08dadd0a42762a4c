package main

import (
	"os"
	"strings"
	"testing"
)

// TestInputsAreNotOverwritten checks that no command writes into a file that it reads, by whatever
// name, and that its inputs stay unchanged.
func TestInputsAreNotOverwritten(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	for _, dir := range []string{"logs", "side"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "logs/a.tsv", read(t, "eval.tsv"))
	write(t, "logs/b.csv", "x\n1\n")
	for link, target := range map[string]string{"link.tsv": "logs/a.tsv", "linked": "logs"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("logs/a.tsv", "hard.tsv"); err != nil {
		t.Fatal(err)
	}
	ok(t, "table", "export", "model", "--to", "rows.parquet")
	ok(t, "table", "import", "table", "--from", "rows.parquet")
	before, jobFile := read(t, "logs/a.tsv"), read(t, "job.yaml")
	for _, line := range []string{
		"predict --model-dir model --data logs/a.tsv --output logs/a.tsv",
		"predict --model-dir model --data logs/a.tsv --output ./logs/../logs/a.tsv",
		"predict --model-dir model --data logs/a.tsv --output link.tsv",
		"predict --model-dir model --data logs/a.tsv --output hard.tsv",
		"predict --model-dir model --data link.tsv --output logs/a.tsv",
		"predict --model-dir model --data logs/*.tsv --output linked/new.tsv",
		"predict --model-dir model --data linked --output logs/new.csv",
		"convert --from logs/a.tsv --to logs/a.tsv",
		"convert --from logs/a.tsv --to x.tsv --split 0.5 --to ./x.tsv",
		"convert --from hard.tsv --join logs/b.csv --on user --to logs/b.csv",
		"convert --from logs/a.tsv --to link.tsv",
		"convert --from logs/a.tsv --job job.yaml --to job.yaml --to-format tsv",
		"generate job.yaml --output job.yaml",
		"generate job.yaml --set data.eval=[./train.tsv]",
		"table export table --to table/rows.parquet",
		"table import table --from table",
		"train job.yaml --set data.train=[logs/*] --set output.model_dir=model2 --set output.metrics=logs/m.jsonl",
		"train job.yaml --set data.train=[.] --set output.model_dir=model2",
		"train job.yaml --set data.eval=[logs] --set output.model_dir=linked/model2",
		"train job.yaml --set data.train=[logs] --set output.model_dir=model2 --set output.tensorboard=logs/tb",
		"train job.yaml --set data.train=[logs] --set output.model_dir=logs",
		"train job.yaml --set data.train=[logs] --set output.model_dir=model2 --profile linked",
		"train job.yaml --set output.metrics=./job.yaml --set output.model_dir=model2",
		"train job.yaml --set training.warm_start=./side/../model",
		"train job.yaml --set sparse_table.kind=ssd --set sparse_table.dirs=[logs/ssd] --set data.train=[logs] --set output.model_dir=model2",
	} {
		o := aibox(strings.Fields(line)...)
		want := exitUsage
		if strings.HasPrefix(line, "train ") && !strings.Contains(line, "warm_start") && !strings.Contains(line, "--profile") { // the job says both
			want = exitJob
		}
		if o.code != want || !strings.Contains(o.stderr, "output") {
			t.Errorf("aibox %s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	if read(t, "logs/a.tsv") != before || read(t, "job.yaml") != jobFile {
		t.Error("an input has changed")
	}
	wantOnly(t, "logs", "a.tsv", "b.csv")
	wantOnly(t, ".", "eval.tsv", "hard.tsv", "job.yaml", "link.tsv", "linked", "logs", "model", "rows.parquet", "side", "table", "train.tsv")

	ok(t, "predict", "--model-dir", "model", "--data", "logs/*.tsv", "--output", "logs/scores.csv")
	ok(t, "convert", "--from", "logs/a.tsv", "--to", "logs/a.parquet")
}
