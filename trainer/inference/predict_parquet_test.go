package inference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/configs"
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
