package inference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
)

// TestPredictKeepsParquetColumns: what is passed through from Parquet to Parquet
// stays what it is, lists and numbers too, in the order asked for.
func TestPredictKeepsParquetColumns(t *testing.T) {
	in := testjobs.Parquet(t, func(j *configs.Job) []string { return j.Data.Eval })
	described := strings.NewReplacer("KIND", "lr", "tsv", "parquet", "  header: true\n", "").Replace(testjobs.Text)
	j, err := configs.Parse("test.yaml", []byte(described), configs.LoadOptions{Set: []string{
		"data.train=[" + in + "]", "data.eval=[" + in + "]", "output.model_dir=" + filepath.Join(t.TempDir(), "model"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	train(t, j)
	out := filepath.Join(t.TempDir(), "p.parquet")
	p, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), inference.PredictOptions{Data: j.Data.Eval, Output: out, Columns: []string{"tags", "D1", "item"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Examples != testjobs.EvalRows {
		t.Errorf("%d rows", p.Examples)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range file.Root().Columns() {
		leaf := c
		for !leaf.Leaf() {
			leaf = leaf.Columns()[0]
		}
		got = append(got, fmt.Sprint(c.Name(), " ", leaf.Type(), " ", leaf.MaxRepetitionLevel()))
	}
	if want := "[tags STRING 1 D1 DOUBLE 0 item STRING 0 label DOUBLE 0 prediction DOUBLE 0]"; fmt.Sprint(got) != want {
		t.Errorf("columns %v, want %v", got, want)
	}
	type row struct {
		Tags []string `parquet:"tags,list"`
	}
	before, err := parquet.ReadFile[row](in)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parquet.ReadFile[row](out)
	if err != nil {
		t.Fatal(err)
	}
	several := 0
	for i := range before {
		if fmt.Sprint(before[i].Tags) != fmt.Sprint(after[i].Tags) {
			t.Fatalf("row %d: tags %v, before %v", i, after[i].Tags, before[i].Tags)
		}
		if len(before[i].Tags) > 1 {
			several++
		}
	}
	if several == 0 {
		t.Error("no row has several tags")
	}
}

// TestPredictRefusesAmbiguousLists: a value of a Parquet list that contains what separates the values in text
// ends a prediction to text, at its row and column; not where bad rows are kept, nor to Parquet.
func TestPredictRefusesAmbiguousLists(t *testing.T) {
	type row struct {
		Label int      `parquet:"label"`
		Tags  []string `parquet:"tags,list"`
	}
	dir := t.TempDir()
	write := func(name string, tags ...[]string) string {
		t.Helper()
		var rows []row
		for i, list := range tags {
			rows = append(rows, row{i % 2, list})
		}
		if err := parquet.WriteFile(dir+"/"+name, rows); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	in := write("in.parquet", []string{"a", "b"}, []string{"b"}, []string{"c"}, []string{"a"})
	other := write("other.parquet", []string{"a", "b"}, []string{"b", "a|c"}, []string{"c"})
	j, err := configs.Parse("test.yaml", []byte("name: x\ndata:\n  format: parquet\n  train: ["+in+"]\n  columns: [{name: label, role: label}, {name: tags}]\nmodel: {kind: lr}\noutput: {model_dir: "+dir+"/model}\n"), configs.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	train(t, j)
	l := testjobs.Load(t, j.Output.ModelDir)
	o := inference.PredictOptions{Data: []string{other}, Output: dir + "/p.csv", Columns: []string{"tags"}}
	_, err = l.Predict(t.Context(), o)
	if err == nil || errkind.Of(t.Context(), err) != errkind.Data {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"other.parquet", "row 2", "column tags", "a|c", "write .parquet"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	o.KeepBadRows = true
	if p, err := l.Predict(t.Context(), o); err != nil || p.Examples != 3 || p.Unscored != 0 {
		t.Errorf("with bad rows: %+v, %v", p, err)
	}
	if text, err := os.ReadFile(o.Output); err != nil || !strings.Contains(string(text), "\nb|a|c,1,") {
		t.Errorf("%s, %v", text, err)
	}
	o.KeepBadRows, o.Output = false, dir+"/p.parquet"
	if p, err := l.Predict(t.Context(), o); err != nil || p.Examples != 3 {
		t.Errorf("to Parquet: %+v, %v", p, err)
	}
}
