package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
)

// TestMissingTables checks that a model whose table, or a part of it, is no longer in its place is
// not reported as a bug in aibox, and that the error says what is missing where.
func TestMissingTables(t *testing.T) {
	inSmallJob(t)
	trainOnSSDs(t)
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
			if o.code != exitIO || !strings.Contains(o.stdout+o.stderr, stderr) || strings.Contains(o.stderr, "bug in aibox") {
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
	copies, err := filepath.Glob(filepath.Join(b, "*.catalog"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	move(copies[0], "copy")
	move(catalog, "catalog")
	refused("neither the catalog nor its copy", "table is missing")
	move("catalog", catalog)
	move("copy", copies[0])
	ok(t, "table", "verify", "ssd")
	ok(t, "eval", "--model-dir", "ssd", "--data", "eval.tsv")
}

// TestTableOfAnotherModel checks that rows of another width than the job says are reported as
// damage, which a warm start detects before it takes any rows over.
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
			"train job.yaml --set model.embedding_dim=8 --set training.warm_start=KIND8 --set output.model_dir=warm --set sparse_table.kind=ssd",
		} {
			o := aibox(strings.Fields(strings.ReplaceAll(args, "KIND", kind))...)
			if o.code != exitIO || !strings.Contains(o.stderr, "values per row") || strings.Contains(o.stderr, "at offset") {
				t.Errorf("aibox %s: exit %d, want %d: %s", args, o.code, exitIO, o.stderr)
			}
		}
	}
}

// TestUnnamedDirectories checks the errors if only some directories of a table are named, or if its
// catalog is lost.
func TestUnnamedDirectories(t *testing.T) {
	inSmallJob(t)
	trainOnSSDs(t)
	for _, dir := range []string{"a", "b"} { // a table without a model
		if err := os.Rename(placeOf(t, dir), "table-"+dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename("table-"+dir, dir); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, "table", "export", "a", "--dir", "b", "--to", "x.parquet")
	for _, dir := range []string{"a", "b"} {
		if buckets, err := filepath.Glob(dir + "/*.bucket"); err != nil || len(buckets) == 0 {
			t.Fatal(buckets, err)
		}
	}
	refused := func(args string, code int, parts ...string) {
		t.Helper()
		o := aibox(append([]string{"table"}, strings.Fields(args)...)...)
		if o.code != code {
			t.Errorf("table %s: exit %d, want %d", args, o.code, code)
		}
		for _, part := range parts {
			if !strings.Contains(o.stderr, part) {
				t.Errorf("table %s: %q is not in %s", args, part, o.stderr)
			}
		}
	}
	for _, args := range []string{"get a 7", "export a --to y.parquet", "compact a", "import a --from x.parquet", "verify a", "stats a"} {
		refused(args, exitIO, "--dir")
	}
	for _, args := range []string{"stats b", "verify b", "get b 7"} {
		refused(args, exitIO, "b: there is no table here", ".bucket", "--dir")
	}
	ok(t, "table", "stats", "b", "--dir", "a") // in any order
	names := namesIn(t, "b")
	for _, kind := range []string{"ssd", "memory"} {
		refused("import b --from x.parquet --kind "+kind, exitIO, "b: there is no table here", ".bucket", "--dir", "empty")
	}
	if have := namesIn(t, "b"); have != names {
		t.Errorf("a refused import changes %s to %s", names, have)
	}
	if err := os.Rename("a/catalog", "catalog"); err != nil {
		t.Fatal(err)
	}
	refused("import a --dir b --from x.parquet", exitIO, "a: there is no table here")
	refused("stats a --dir b", exitIO, "a: there is no table here", "catalog")
	if disk.Exists("a/catalog") {
		t.Error("a refused import makes a table")
	}
	if err := os.Rename("catalog", "a/catalog"); err != nil {
		t.Fatal(err)
	}
	ok(t, "table", "verify", "a", "--dir", "b")
	// No other table may be made over a directory that has files of this one.
	refused("import c --dir b --from x.parquet", exitIO, "in none of the table's directories, c, b")
	ok(t, "table", "verify", "a", "--dir", "b")
}
