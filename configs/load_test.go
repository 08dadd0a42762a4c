package configs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const smallJob = `data:
  train: [in.csv]
  format: csv
  columns:
    - {name: click, role: label}
    - {name: price, role: dense, transform: [log1p, {clip: {max: 5}}]}
    - {name: user}
model: {kind: deepfm}
output: {model_dir: out}
`

func mustParse(t *testing.T, text string, sets ...string) *Job {
	t.Helper()
	j, err := Parse("dir/small.yaml", []byte(text), LoadOptions{Date: "2026-11-20", Set: sets, Env: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func noEnv(string) (string, bool) { return "", false }

func TestDefaultsAreFilledIn(t *testing.T) {
	j := mustParse(t, smallJob)
	if j.Name != "small" || j.Seed != 1 || j.Training.BatchSize != 512 || j.Data.MaxLineBytes != 1<<20 {
		t.Errorf("defaults: %+v", j)
	}
	if !*j.Data.Header || j.Data.Delimiter != "," || j.Data.Label != "click" {
		t.Errorf("data: %+v", j.Data)
	}
	if j.Output.Metrics != "out/metrics.jsonl" || j.Output.TensorBoard != "out/tensorboard" {
		t.Errorf("output: %+v", j.Output)
	}
	user, price := j.Data.Columns[2], j.Data.Columns[1]
	if user.Role != "sparse" || user.Space != "user" || user.Missing != "" || price.Missing != MissingIndicator || price.Space != "" {
		t.Errorf("columns: %+v", j.Data.Columns)
	}
	if j.Model.CrossLayers != 0 || j.Model.BottomLayers != nil || j.Optimizer.Dense.Momentum != 0 {
		t.Errorf("keys without effect have values: %+v %+v", j.Model, j.Optimizer)
	}
	if want := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC); !j.Date.Equal(want) || !j.DateGiven {
		t.Errorf("date %v, given %v", j.Date, j.DateGiven)
	}
}

func TestDateDefaultsToNow(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 3, 1, 1, 30, 0, 0, time.FixedZone("", 2*3600)) }
	j, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Now: now, Set: []string{"output.model_dir=m/{{date}}"}})
	if err != nil {
		t.Fatal(err)
	}
	if j.Output.ModelDir != "m/2026-02-28" || j.DateGiven || !j.Dated {
		t.Errorf("model_dir %s, date given %v", j.Output.ModelDir, j.DateGiven)
	}
}

func TestSetOverrides(t *testing.T) {
	j := mustParse(t, smallJob,
		"model.kind=dcn_v2", "model.hidden_layers=[8,4]", "training.batch_size=64",
		"data.train=[a.csv, b.csv]", "data.columns[1].transform=[]",
		"data.columns[3]={name: item, space: user}", "data.eval[0]=*.csv", "sparse_table.memory_bytes=1GiB")
	if j.Model.Kind != "dcn_v2" || !reflect.DeepEqual(j.Model.HiddenLayers, []int{8, 4}) || j.Training.BatchSize != 64 {
		t.Errorf("%+v", j)
	}
	if !reflect.DeepEqual(j.Data.Train, []string{"a.csv", "b.csv"}) || !reflect.DeepEqual(j.Data.Eval, []string{"*.csv"}) {
		t.Errorf("%v %v", j.Data.Train, j.Data.Eval)
	}
	if c := j.Data.Columns[3]; c.Space != "user" || c.Role != "sparse" || len(j.Data.Columns[1].Transform) != 0 {
		t.Errorf("%+v", j.Data.Columns)
	}
	if j.SparseTable.MemoryBytes != 1<<30 {
		t.Errorf("memory_bytes %v", j.SparseTable.MemoryBytes)
	}
}

// A delimiter may come from a shell as it is.
func TestSetOfWhiteSpace(t *testing.T) {
	for _, set := range []string{"data.delimiter=\t", "data.delimiter=\"\t\"", `data.delimiter="\t"`} {
		if j := mustParse(t, smallJob, set); j.Data.Delimiter != "\t" {
			t.Errorf("%q: delimiter %q", set, j.Data.Delimiter)
		}
	}
	for _, set := range []string{"data.delimiter=\n", "data.delimiter='\n'", "data.delimiter=\"\n\"", `data.delimiter="\n"`, "data.delimiter=\"\r\"", "data.delimiter= "} {
		j, err := Parse("small.yaml", []byte(smallJob), LoadOptions{Set: []string{set}, Env: noEnv})
		if err == nil || !strings.Contains(err.Error(), "data.delimiter: ") {
			t.Errorf("%q: %v, delimiter %q", set, err, j.Data.Delimiter)
		}
	}
}

// Whoever writes a tab as shells do not pass it on, or by its name, learns how it is written.
func TestTabIsExplained(t *testing.T) {
	_, err := Parse("small.yaml", []byte(smallJob), LoadOptions{Set: []string{`data.delimiter=\t`}, Env: noEnv})
	if want := `--set 'data.delimiter="\t"'`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = Parse("small.yaml", []byte(strings.Replace(smallJob, "format: csv", "format: csv\n  delimiter: tab", 1)), LoadOptions{Env: noEnv})
	if want := `a tab is written "\t"`; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "--set") {
		t.Errorf("%v, want %s", err, want)
	}
}

// The schema of a file takes a null character for the default of the format, so it cannot be chosen.
func TestNullIsNoDelimiter(t *testing.T) {
	_, err := Parse("small.yaml", []byte(smallJob), LoadOptions{Set: []string{`data.delimiter="\0"`}, Env: noEnv})
	if want := `data.delimiter: "\0" is not a delimiter`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// The generator's columns suit the index formats: one index for a dense column,
// one for each value of a field.
func TestGeneratedIndices(t *testing.T) {
	text := `
data: {train: [in], format: FORMAT}
model: {kind: deepfm}
output: {model_dir: out}
generate:
  dense_columns: 2
  fields: [{name: user, cardinality: 1000, max_values: 3}, {name: ad, cardinality: 7, repeat: 2}]
`
	type column struct {
		name, role string
		rng        []int64
		field      int
	}
	for format, want := range map[string][]column{
		"libsvm": {{"D1", "dense", []int64{1, 1}, -1}, {"D2", "dense", []int64{2, 2}, -1}, {"user", "sparse", []int64{3, 1002}, -1},
			{"ad1", "sparse", []int64{1003, 1009}, -1}, {"ad2", "sparse", []int64{1010, 1016}, -1}},
		"libffm": {{"D1", "dense", nil, 0}, {"D2", "dense", nil, 1}, {"user", "sparse", nil, 2}, {"ad1", "sparse", nil, 3}, {"ad2", "sparse", nil, 4}},
	} {
		j := mustParse(t, strings.Replace(text, "FORMAT", format, 1))
		var got []column
		for _, c := range j.Data.Columns {
			field := -1
			if c.Field != nil {
				field = *c.Field
			}
			got = append(got, column{c.Name, c.Role, c.Range, field})
		}
		if !reflect.DeepEqual(got, want) || j.Data.Label != "label" || j.Data.Columns[0].Transform[0].Kind != "log1p" {
			t.Errorf("%s: %+v, label %s; want %+v", format, got, j.Data.Label, want)
		}
	}
	// Ranges do not overflow.
	huge := strings.NewReplacer("FORMAT", "libsvm", "cardinality: 7, repeat: 2", "cardinality: 4503599627370496, repeat: 10000").Replace(text)
	j := mustParse(t, huge)
	if last := j.Data.Columns[len(j.Data.Columns)-1]; last.Range[0] <= 0 || last.Range[1] <= last.Range[0] {
		t.Errorf("%+v", last)
	}
}

func TestCriteoSchema(t *testing.T) {
	j := mustParse(t, `
data:
  train: [day_0.gz]
  format: criteo
  columns:
    - {name: C3, space: C1}
    - {name: I2, role: ignore}
    - {name: I3, transform: [{bucketize: {boundaries: [1, 2]}}]}
model: {kind: dlrm}
output: {model_dir: out}
`)
	c := j.Data.Columns
	if len(c) != 40 || c[0].Role != "label" || c[1].Name != "I1" || c[39].Name != "C26" {
		t.Fatalf("columns: %+v", c)
	}
	if c[2].Role != "ignore" || c[16].Name != "C3" || c[16].Space != "C1" || c[1].Transform[0].Kind != "log1p" {
		t.Errorf("columns: %+v", c)
	}
	if d, s := len(j.DenseColumns()), len(j.SparseColumns()); d != 11 || s != 27 {
		t.Errorf("%d dense, %d sparse; want 11 and 27", d, s)
	}
	if !reflect.DeepEqual(j.Model.BottomLayers, []int{64, 16}) {
		t.Errorf("bottom layers %v", j.Model.BottomLayers)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	j := mustParse(t, `
x-shared:
  dense: &dense {role: dense, missing: -1}
data:
  train: &files [a, b]
  eval: *files
  format: tsv
  columns:
    - {name: y, role: label}
    - {<<: *dense, name: p}
    - {<<: *dense, name: q, missing: 2}
    - name: u
model: {kind: lr}
output: {model_dir: out}
`)
	if !reflect.DeepEqual(j.Data.Eval, []string{"a", "b"}) || j.Data.Columns[1].Missing != "-1" || j.Data.Columns[2].Missing != "2" {
		t.Errorf("%+v", j.Data)
	}
}

func TestLoadNamesAMissingFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), LoadOptions{})
	var faults FaultsError
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &faults) {
		t.Errorf("error %v", err)
	}
}

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nightly.yaml")
	if err := os.WriteFile(path, []byte("\ufeff"+smallJob), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Load(path, LoadOptions{})
	if err != nil || j.Name != "nightly" {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestWindowsLineEnds(t *testing.T) {
	text := strings.ReplaceAll(smallJob+"trainign: {}\n", "\n", "\r\n")
	_, err := Parse("a.yaml", []byte(text), LoadOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "a.yaml:10:1: trainign: unknown key") {
		t.Errorf("%v", err)
	}
}
