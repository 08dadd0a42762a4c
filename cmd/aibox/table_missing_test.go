package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingTables: a model whose table, or a part of it, is not where it was
// is no fault of aibox, and the error says what is missing where.
func TestMissingTables(t *testing.T) {
	inSmallJob(t)
	ok(t, append([]string{"train", "job.yaml"}, onSSDs...)...)
	a, b := placeOf(t, "a"), placeOf(t, "b")
	buckets, err := filepath.Glob(filepath.Join(a, "*.bucket"))
	if err != nil || len(buckets) == 0 {
		t.Fatal(buckets, err)
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what, stderr string) {
		t.Helper()
		for _, args := range []string{
			"eval --model-dir ssd --data eval.tsv", "predict --model-dir ssd --data eval.tsv --output p.csv", "inspect ssd",
			"train job.yaml --set training.warm_start=ssd --set output.model_dir=warm",
			"table stats ssd", "table verify ssd", "table compact ssd", "table get ssd 77", "table export ssd --to x.parquet",
		} {
			o := aibox(strings.Fields(args)...)
			if o.code != exitIO || !strings.Contains(o.stdout+o.stderr, stderr) || strings.Contains(o.stderr, "fault of aibox") {
				t.Errorf("%s: aibox %s: exit %d, want %d and %q: %s%s", what, args, o.code, exitIO, stderr, o.stdout, o.stderr)
			}
		}
	}
	bucket := buckets[0]
	move(bucket, "bucket")
	refused("a bucket file in neither", filepath.Base(bucket))
	write(t, filepath.Join(b, filepath.Base(bucket)), read(t, "bucket"))
	move("bucket", bucket)
	refused("a bucket file in both", filepath.Base(bucket))
	if err := os.Remove(filepath.Join(b, filepath.Base(bucket))); err != nil {
		t.Fatal(err)
	}
	move(b, "b-unmounted")
	refused("an SSD not mounted", b)
	move("b-unmounted", b)
	catalog := filepath.Join(a, "catalog")
	move(catalog, "catalog")
	refused("no catalog", "table is missing")
	move("catalog", catalog)
	ok(t, "table", "verify", "ssd")
	ok(t, "eval", "--model-dir", "ssd", "--data", "eval.tsv")
}

// TestTableOfAnotherModel: rows of another width than the job says are damage,
// which a warm start sees before it takes any over.
func TestTableOfAnotherModel(t *testing.T) {
	inSmallJob(t)
	for _, kind := range []string{"memory", "ssd"} {
		for _, dim := range []string{"4", "8"} {
			ok(t, "train", "job.yaml", "--set", "sparse_table.kind="+kind, "--set", "model.embedding_dim="+dim, "--set", "output.model_dir="+kind+dim)
		}
		if err := os.RemoveAll(kind + "8/gen-000001/table"); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(kind+"8/gen-000001/table", os.DirFS(kind+"4/gen-000001/table")); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{
			"eval --model-dir KIND8 --data eval.tsv", "inspect KIND8",
			"train job.yaml --set model.embedding_dim=8 --set training.warm_start=KIND8 --set output.model_dir=warm",
		} {
			o := aibox(strings.Fields(strings.ReplaceAll(args, "KIND", kind))...)
			if o.code != exitIO || !strings.Contains(o.stderr, "values a row") || strings.Contains(o.stderr, "at offset") {
				t.Errorf("aibox %s: exit %d, want %d: %s", args, o.code, exitIO, o.stderr)
			}
		}
	}
}
