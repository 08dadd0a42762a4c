package configs

import (
	"bytes"
	"strings"
	"testing"
)

// TestOverridesDropKeys: another kind of model, optimizer or format on the command line
// leaves out the keys of the file that are for the one before, and says so; keys that
// the file itself makes useless stay faults, and so do useless overrides.
func TestOverridesDropKeys(t *testing.T) {
	const file = `
data: {train: [a], eval: [b], format: csv, delimiter: ";", columns: [{name: y, role: label}, {name: x, role: dense, group: g}, {name: u, separator: "|"}, {name: v}]}
model: {kind: dlrm, embedding_dim: 8, bottom_layers: [4, 8], hidden_layers: [32], dropout: 0.1}
optimizer: {dense: {kind: adam, beta1: 0.8}, rows: {kind: ftrl, ftrl_l1: 2}}
training: {epochs: 3, early_stopping: {patience: 1}}
output: {model_dir: o}
`
	for _, c := range []struct {
		set   []string
		notes []string
	}{
		{[]string{"model.kind=dlrm"}, nil},
		{[]string{"model.kind=deepfm"}, []string{"model.bottom_layers"}},
		{[]string{"model.kind=lr"}, []string{"model.embedding_dim", "model.bottom_layers", "model.hidden_layers", "model.dropout"}},
		{[]string{"model.kind=aibox"}, []string{"model.bottom_layers", "model.hidden_layers"}},
		{[]string{"optimizer.dense.kind=sgd", "optimizer.rows={kind: adam}"}, []string{"optimizer.dense.beta1"}},
		{[]string{"data.format=parquet"}, []string{"data.delimiter"}},
		{[]string{"data.columns[2].role=dense"}, []string{"data.columns[2].separator"}},
		{[]string{"training.epochs=2"}, nil},
		{[]string{"training.epochs=1"}, []string{"training.early_stopping"}},
	} {
		j, err := Parse("job.yaml", []byte(file), LoadOptions{Env: noEnv, Set: c.set})
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
			continue
		}
		notes := j.Notes()
		for i, want := range c.notes {
			if len(notes) != len(c.notes) || !strings.HasPrefix(notes[i], want+" of the job file is ignored: it has no effect with ") || !strings.HasSuffix(notes[i], "(--set "+c.set[0]+")") {
				t.Errorf("%v: %q, want notes on %q", c.set, notes, c.notes)
				break
			}
		}
		if len(c.notes) == 0 && notes != nil {
			t.Errorf("%v: %q", c.set, notes)
		}
		var shown bytes.Buffer
		if err := j.Show(&shown); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("job.yaml", shown.Bytes(), LoadOptions{Env: noEnv}); err != nil {
			t.Errorf("%v: what is shown has faults: %v", c.set, err)
		}
	}
	for _, set := range [][]string{
		{"model.kind=deepfm", "model.cross_layers=2"}, {"model.cross_layers=2"}, {"model={kind: lr, dropout: 0.5}"},
		{"training.epochs=1", "training.early_stopping.patience=2"}, {"training={epochs: 1, early_stopping: {patience: 1}}"},
	} {
		if _, err := Parse("job.yaml", []byte(file), LoadOptions{Env: noEnv, Set: set}); err == nil || !strings.Contains(err.Error(), "has no effect with") {
			t.Errorf("%v: %v", set, err)
		}
	}
	if _, err := Parse("job.yaml", []byte(strings.Replace(file, "dropout: 0.1", "cross_layers: 2", 1)), LoadOptions{Env: noEnv, Set: []string{"training.epochs=2"}}); err == nil {
		t.Error("a useless key of the file is no fault beside another override")
	}
}
