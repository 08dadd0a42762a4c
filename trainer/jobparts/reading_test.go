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

// TestReaderThreads: where devices train, readers leave some of the cores to what feeds these.
func TestReaderThreads(t *testing.T) {
	job := func(kind, embeddings string) *configs.Job {
		return &configs.Job{Engine: configs.Engine{Kind: kind, Embeddings: embeddings}}
	}
	for cores, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 8: 7, 16: 14, 64: 56} {
		if got := defaultReaderThreads(job("cuda", "device"), cores); got != want {
			t.Errorf("%d of %d cores read, want %d", got, cores, want)
		}
		for _, other := range []*configs.Job{job("cpu", "cpu"), job("cuda", "cpu")} {
			if got := defaultReaderThreads(other, cores); got != cores {
				t.Errorf("%+v: %d of %d cores read", other.Engine, got, cores)
			}
		}
	}
	j := job("cuda", "device")
	j.Pipeline.ReaderThreads = 99
	if got := ReaderThreads(j); got != 99 {
		t.Errorf("%d threads read, not as many as the job says", got)
	}
}
