package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
)

// TestTablesOfModels checks that neither import nor compact changes the table of a model that is
// named by its own directory.
func TestTablesOfModels(t *testing.T) {
	inTables(t)
	ok(t, "train", "job.yaml", "--set", "sparse_table.kind=ssd", "--set", "output.model_dir=one")
	ok(t, "table", "export", "model", "--to", "x.parquet")
	want := ok(t, "inspect", "--digest", "ssd")
	a, b := placeOf(t, "a"), placeOf(t, "b")
	for name, target := range map[string]string{"link": a, "linked": "model/gen-000001/table"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"model/gen-000001/table": "copy", "one/gen-000001/table": "copies/ssd"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	abs, err := filepath.Abs("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, stderr string }{
		{"import model/gen-000001/table --from x.parquet", "only training writes"},
		{"import linked --from x.parquet", "only training writes"},
		{"import one/gen-000001/table --from x.parquet", "only training writes"},
		{"import one/gen-000001/../gen-000001/table/ --from x.parquet", "only training writes"},
		{"import " + a + " --dir " + b + " --from x.parquet", "only training writes"},
		{"import " + a + " --from x.parquet", "only training writes"},
		{"import link --dir " + b + " --from x.parquet", "only training writes"},
		{"import new --dir " + b + " --from x.parquet", "only training writes"},
		{"import one/gen-000002/table --from x.parquet", "only training writes"}, // of one that is being trained
		{"import copy --from x.parquet", "was copied"},
		{"import copies/ssd --from x.parquet", "was copied"},
		{"compact one/gen-000001/table --min-gain 0.0001", "aibox table compact " + abs},
		{"compact " + a + " --dir " + b + " --min-gain 0.0001", "model ssd"},
		{"compact link --dir " + b + " --min-gain 0.0001", "model ssd"},
		{"compact copies/ssd --min-gain 0.0001", "was copied"},
	} {
		o := aibox(append([]string{"table"}, strings.Fields(c.args)...)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, c.stderr) || o.stdout != "" {
			t.Errorf("table %s: exit %d: %s%s", c.args, o.code, o.stdout, o.stderr)
		}
	}
	if disk.Exists("new") {
		t.Error("a refused import leaves a directory")
	}
	for _, model := range []string{"ssd", "model", "one"} {
		if have := ok(t, "inspect", "--digest", model); have != want {
			t.Errorf("%s has digest %s, want %s", model, have, want)
		}
		ok(t, "eval", "--model-dir", model, "--data", "eval.tsv")
	}
	ok(t, "table", "compact", "one", "--min-gain", "0.0001")
	ok(t, "table", "stats", "one/gen-000001/table") // looking is free
	if have := ok(t, "inspect", "--digest", "one"); have != want {
		t.Errorf("digest %s after compaction, want %s", have, want)
	}
}

// TestTableSets checks that each setting on the command line of a table command either takes effect
// or is refused.
func TestTableSets(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml", "--set", "training.epochs=2", "--set", "output.model_dir=model-{{date}}", "--date", "2026-11-20")
	for _, c := range []struct {
		line string
		want int
	}{
		{"table stats job.yaml --date 2026-11-20 --set output.model_dir=model-{{date}}", exitDone},
		{"table stats job.yaml --date 2026-11-20 --set output.model_dir=model-{{date}} --set training.epochs=2 --set timezone=UTC", exitDone},
		{"table stats job.yaml --set output.model_dir=model-2026-11-20 --set training.epochs=3", exitUsage},
		{"table stats job.yaml --set output.model_dir=model-2026-11-20 --set model.hidden_layers=[7]", exitUsage},
		{"table stats job.yaml --set output.model_dir=model-2026-11-20 --set training.epoch=2", exitUsage},
		{"table stats model-2026-11-20 --set training.epochs=2", exitUsage},
		{"table stats model-{{date}} --date 2026-11-20", exitDone},
		{"table stats model-{{date}} --date 2026-11-20 --set timezone=UTC", exitDone},
		{"table stats model-{{date}} --date 2026-11-20 --set training.epochs=2", exitUsage},
		{"table verify model-{{date}} --date 2026-11-20 --set sparse_table.memory_bytes=1MiB", exitUsage},
	} {
		if o := aibox(strings.Fields(c.line)...); o.code != c.want {
			t.Errorf("aibox %s: exit %d, want %d: %s", c.line, o.code, c.want, o.stderr)
		}
	}
}
