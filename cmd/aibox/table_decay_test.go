package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/rowfile"
	"aibox/sparsetable"
)

// TestDecayedTable checks that get and export show the rows of a model as the model uses them after
// its last step, while rows in the table itself that were not used lately have their old values.
func TestDecayedTable(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml", "--set", "optimizer.rows.weight_decay=0.9", "--set", "sparse_table.value_format=bfloat16")
	ok(t, "table", "export", "model", "--to", "x.parquet")
	rows := openRows(t, "x.parquet")
	l := rows.Layout()
	if l.Format != sparsetable.Float32 {
		t.Fatalf("exported as %v", l)
	}
	get := func(table string, key uint64) []any {
		var r []tablecmd.RowReport
		if err := json.Unmarshal([]byte(ok(t, "table", "get", "--json", table, fmt.Sprint(key))), &r); err != nil || len(r) != 1 || !r[0].Found {
			t.Fatalf("%v, %v", r, err)
		}
		return r[0].Values
	}
	other := 0
	for range 20 {
		key, row, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		var want []any
		text, err := json.Marshal(l.Values(row))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if got := get("model", key); !reflect.DeepEqual(got, want) {
			t.Errorf("get shows %v, export %v", got, want)
		}
		if !reflect.DeepEqual(get("model/gen-000001/table", key), want) {
			other++
		}
	}
	if other == 0 {
		t.Error("no row has decayed since it was used")
	}
	// The rows go into a table, from which they come out again as they were.
	ok(t, "table", "import", "one", "--from", "x.parquet")
	ok(t, "table", "export", "one", "--to", "y.parquet")
	ok(t, "table", "import", "two", "--from", "y.parquet", "--kind", "memory")
	if a, b := digestOf(t, "one"), digestOf(t, "two"); a != b {
		t.Errorf("digests %s and %s", a, b)
	}
	if text := ok(t, "inspect", "model"); !strings.Contains(text, "5 bfloat16 values") {
		t.Errorf("inspect prints %s", text)
	}
}

// openRows opens an exported table until the end of the test.
func openRows(t *testing.T, name string) *rowfile.Reader {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := rowfile.NewReader(file, info.Size(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })
	return rows
}
