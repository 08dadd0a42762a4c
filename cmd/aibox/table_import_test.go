package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/sparsetable"
)

// plainRow is a row as other programs write it.
type plainRow struct {
	Key    int64     `parquet:"key"`
	Values []float32 `parquet:"values,list"`
}

// writeParquet writes a file of rows.
func writeParquet[T any](t *testing.T, name string, rows ...T) {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, name, b.String())
}

// importOf runs an import and returns its report.
func importOf(t *testing.T, args ...string) (r tablecmd.ImportReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(ok(t, append([]string{"table", "import", "--json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestImportNoRows checks that files without rows, before, between and after others, and empty row
// groups cause no problem.
func TestImportNoRows(t *testing.T) {
	testdata, err := filepath.Abs("../../internal/rowfile/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"no_rows.parquet", "empty_groups.parquet"} {
		data, err := os.ReadFile(filepath.Join(testdata, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(data))
	}
	row := func(key int64) plainRow { return plainRow{key, []float32{1, 2}} }
	writeParquet(t, "a.parquet", row(11), row(12), row(13))
	writeParquet(t, "c.parquet", row(14), row(15), row(16), row(17))
	writeParquet[plainRow](t, "none.parquet") // no row group at all
	// An empty table of other rows, with its layout.
	writeParquet(t, "wide.parquet", plainRow{1, []float32{1, 2, 3}})
	writeParquet(t, "zero.parquet", struct {
		plainRow
		Count int32 `parquet:"count"`
	}{plainRow{1, []float32{1, 2, 3}}, 0})
	ok(t, "table", "import", "wide", "--from", "zero.parquet")
	ok(t, "table", "export", "wide", "--to", "none_wide.parquet")

	for from, want := range map[string]int64{
		"a no_rows c":                       7,
		"no_rows a c":                       7,
		"a c no_rows":                       7,
		"no_rows none a none no_rows":       3,
		"a empty_groups c":                  10,
		"empty_groups":                      3,
		"none_wide a none_wide c none_wide": 7,
		"none_wide no_rows":                 0,
		"no_rows none_wide":                 0,
	} {
		for _, kind := range []string{"ssd", "memory"} {
			args := []string{"t", "--kind", kind}
			for name := range strings.FieldsSeq(from) {
				args = append(args, "--from", name+".parquet")
			}
			if r := importOf(t, args...); r.Read != want || r.Imported != want || r.Rows != want {
				t.Errorf("%s, kind %s: %+v, want %d rows", from, kind, r, want)
			}
			if err := os.RemoveAll("t"); err != nil {
				t.Fatal(err)
			}
		}
	}
	ok(t, "table", "import", "there", "--from", "a.parquet")
	if r := importOf(t, "there", "--from", "no_rows.parquet"); r.Imported != 0 || r.Rows != 3 {
		t.Errorf("no rows into a table that is there: %+v", r)
	}
	for args, want := range map[string]string{
		"--from no_rows.parquet":                                          "no_rows.parquet: there are no rows and no metadata that say how long values are",
		"--from no_rows.parquet --from none.parquet":                      "no_rows.parquet: there are no rows",
		"--from a.parquet --from no_rows.parquet --from wide.parquet":     "those of the preceding files",
		"--from none_wide.parquet --from a.parquet --from wide.parquet":   "those of the preceding files",
		"--from no_rows.parquet --from a.parquet --from nosuch.parquet":   "nosuch.parquet",
		"--from a.parquet --from no_rows.parquet --value-format float128": "--value-format",
	} {
		o := aibox(append(strings.Fields("table import t"), strings.Fields(args)...)...)
		if o.code == exitDone || o.code == exitInternal || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: exit %d: %s", args, o.code, o.stderr)
		}
		if disk.Exists("t") {
			t.Fatalf("%s: a failed import leaves a table", args)
		}
	}
}

// namesIn returns the names in a directory.
func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestFailedImport checks that everything that a failed import made is deleted, also in directories
// that existed before, and that other files in them stay.
func TestFailedImport(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := make([]plainRow, 3000)
	for i := range rows {
		rows[i] = plainRow{int64(i), []float32{1, 2}}
	}
	writeParquet(t, "good.parquet", rows...)
	writeParquet(t, "late.parquet", append(rows, plainRow{-1, []float32{1}})...)
	writeParquet(t, "wide.parquet", plainRow{1, []float32{1, 2, 3}})
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	for _, kind := range []string{"ssd", "memory"} {
		for _, there := range []bool{false, true} {
			for from, ctx := range map[string]context.Context{
				"late.parquet":                         t.Context(),
				"good.parquet --from wide.parquet":     t.Context(),
				"good.parquet --memory 1MiB --dir sub": t.Context(),
				"good.parquet":                         ctx,
			} {
				if kind == "memory" && strings.Contains(from, "--dir") {
					continue
				}
				if there {
					for _, dir := range []string{"t", "b"} {
						if err := os.Mkdir(dir, 0o755); err != nil {
							t.Fatal(err)
						}
						write(t, dir+"/note", "mine")
					}
				}
				args := "table import t --kind " + kind + " --from " + from
				if kind == "ssd" {
					args += " --dir b"
				}
				if o := aiboxContext(ctx, strings.Fields(args)...); o.code == exitDone || o.code == exitInternal {
					t.Errorf("%s: exit %d: %s", args, o.code, o.stderr)
				}
				for _, dir := range []string{"t", "b"} {
					if !there && disk.Exists(dir) {
						t.Errorf("%s: leaves the directory %s with %s", args, dir, namesIn(t, dir))
					} else if there && namesIn(t, dir) != "note" {
						t.Errorf("%s: leaves %s in %s", args, namesIn(t, dir), dir)
					}
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	// One that was killed leaves a catalog without a snapshot, of rows that no
	// table has: any may follow.
	if err := os.Mkdir("t", 0o755); err != nil {
		t.Fatal(err)
	}
	tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Kind: sparsetable.KindSSD, Dir: "t", Layout: sparsetable.Layout{ValueDim: 7}})
	if err == nil {
		err = tab.Close()
	}
	if err != nil || !disk.Exists("t/catalog") {
		t.Fatal(err)
	}
	if r := importOf(t, "t", "--from", "good.parquet", "--value-format", "float16"); r.Rows != 3000 {
		t.Errorf("%+v", r)
	}
	// A table that is there stays as it was.
	want := digestOf(t, "t")
	for _, from := range []string{"late.parquet", "wide.parquet"} {
		if o := aibox("table", "import", "t", "--from", from); o.code == exitDone || o.code == exitInternal {
			t.Errorf("%s: exit %d: %s", from, o.code, o.stderr)
		}
	}
	if have := digestOf(t, "t"); have != want {
		t.Errorf("digest %s after failed imports, want %s", have, want)
	}
}

// TestImportThatCannotDrop checks that an import succeeds, with a warning, if its rows are committed but the snapshot
// that they replace cannot be deleted.
func TestImportThatCannotDrop(t *testing.T) {
	t.Chdir(t.TempDir())
	row := func(key int64) plainRow { return plainRow{key, []float32{1, 2}} }
	writeParquet(t, "a.parquet", row(11), row(12), row(13))
	writeParquet(t, "b.parquet", row(14), row(15))
	importOf(t, "there", "--from", "a.parquet")
	head := filepath.Join("there", "catalog", "HEAD")
	before, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	failed := false
	diskfault.Inject(func(operation, path string) error {
		if operation != "write" || !strings.HasSuffix(path, head+".tmp") {
			return nil
		}
		if now, _ := os.ReadFile(head); bytes.Equal(now, before) {
			return nil
		}
		failed = true // the new snapshot is committed
		return syscall.ENOSPC
	})
	defer diskfault.Inject(nil)
	o := aibox("table", "import", "there", "--from", "b.parquet")
	diskfault.Inject(nil)
	if o.code != exitDone || !failed || !strings.Contains(o.stdout, "which has 5 now") || !strings.Contains(o.stderr, "earlier snapshot could not be deleted") {
		t.Errorf("exit %d, failed %v: %s%s", o.code, failed, o.stdout, o.stderr)
	}
	if r := importOf(t, "there", "--from", "a.parquet"); r.Rows != 5 {
		t.Errorf("the table then has %d rows", r.Rows)
	}
}
