package jobparts

import (
	"testing"

	"aibox/configs"
	"aibox/reader"
)

// TestLabelRulesAreParsedOnce: a rule that the job file may have is the rule that
// training applies.
func TestLabelRulesAreParsedOnce(t *testing.T) {
	for text, want := range map[string]reader.LabelRule{
		"label >= 1_000": {Column: "label", Op: ">=", Value: 1000}, "label<1e3": {Column: "label", Op: "<", Value: 1000},
		"label != -0.5": {Column: "label", Op: "!=", Value: -0.5}, "label": {Column: "label"},
	} {
		job, err := configs.Parse("job.yaml", []byte(`
data:
  train: [log.csv]
  format: csv
  columns: [{name: label, role: label}, {name: item}]
model: {kind: lr}
output: {model_dir: model}
`), configs.LoadOptions{Set: []string{"data.label=" + text}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Schema(job)
		if err != nil || s.Label != want {
			t.Errorf("%s: %+v, %v; want %+v", text, s.Label, err, want)
		}
	}
}

// TestLabelNamedLikeAComparison checks that data.label means the column of that name by default,
// even if the name looks like a comparison.
func TestLabelNamedLikeAComparison(t *testing.T) {
	for _, name := range []string{"clicks > 0", "click ", "="} {
		job, err := configs.Parse("job.yaml", []byte(`
data:
  train: [log.csv]
  format: csv
  columns: [{name: "`+name+`", role: label}, {name: item}]
model: {kind: lr}
output: {model_dir: model}
`), configs.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Schema(job); err != nil || s.Label != (reader.LabelRule{Column: name}) {
			t.Errorf("%q: %+v, %v", name, s.Label, err)
		}
	}
}

// TestCompressed: names tell whether text is compressed, unless the job file says it.
func TestCompressed(t *testing.T) {
	for _, c := range []struct {
		uri, compression, format string
		want                     bool
	}{
		{"a/*.csv", "auto", "csv", false},
		{"a/*.csv.GZ", "auto", "csv", true},
		{"a/*.csv.zstd", "", "csv", true},
		{"a/*.csv.gzip", "none", "csv", false},
		{"a/*.csv", "gzip", "csv", true},
		{"a/*.gz", "auto", "parquet", false},
	} {
		for key, data := range map[string]configs.Data{"train": {Train: []string{c.uri}}, "eval": {Eval: []string{c.uri}}} {
			data.Compression, data.Format = c.compression, c.format
			if got := Compressed(&configs.Job{Data: data}); got != c.want {
				t.Errorf("%+v of data.%s: %v", c, key, got)
			}
		}
	}
}
