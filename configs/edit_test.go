package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEdited(t *testing.T) {
	t.Parallel()
	const rest = "data: {train: [a.tsv], format: criteo}\noutput: {model_dir: m}\n"
	cases := []struct{ name, file, set, want string }{
		{"a number", "model:\n  kind: fm # c\n  embedding_dim: 8 # wide\n", "model.embedding_dim=4", "model:\n  kind: fm # c\n  embedding_dim: 4 # wide\n"},
		{"a text in quotes", "model: {kind: \"fm\"} # c\n", "model.kind=lr", "model: {kind: lr} # c\n"},
		{"a list in brackets", "model:\n  kind: dcn\n  hidden_layers: [8,\n    4] # c\n", "model.hidden_layers=[2]", "model:\n  kind: dcn\n  hidden_layers: [2] # c\n"},
		{"a list of lines", "model:\n  kind: dcn\n  hidden_layers: # c\n    - 8\n    - 4 # d\n", "model.hidden_layers=[2, 2]", "model:\n  kind: dcn\n  hidden_layers: [2, 2] # d\n"},
		{"an item", "model:\n  kind: dcn\n  hidden_layers: [8, 4]\n", "model.hidden_layers[1]=2", "model:\n  kind: dcn\n  hidden_layers: [8, 2]\n"},
		{"a new key", "model:\n  # about kind\n  kind: dcn # c\n  hidden_layers: [8, 4]\n", "model.cross_layers=2", "model:\n  # about kind\n  kind: dcn # c\n  cross_layers: 2\n  hidden_layers: [8, 4]\n"},
		{"a new key in braces", "model: {kind: dcn}\n", "model.cross_layers=2", "model: {cross_layers: 2, kind: dcn}\n"},
		{"a new key of an item", "model:\n  kind: aibox\n  towers:\n    - name: \"a\"\n      dense: [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]\n", "model.towers[0].layers=[4]", "model:\n  kind: aibox\n  towers:\n    - layers: [4]\n      name: \"a\"\n      dense: [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]\n"},
		{"a list of quoted texts", "model:\n  kind: aibox\n  towers: [{name: a, dense: [\"I1\", 'I2', I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]}]\n", "model.towers[0].dense=[I2, I1, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]", "model:\n  kind: aibox\n  towers: [{name: a, dense: [I2, I1, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]}]\n"},
		{"a list of braces", "model:\n  kind: aibox\n  towers: [{name: \"]}\", dense: [I1]}, {name: 'i''t]', dense: [I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]}] # c\n", "model.towers=[{name: a, dense: [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]}]", "model:\n  kind: aibox\n  towers: [{name: a, dense: [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13]}] # c\n"},
		{"a new section", "model: {kind: fm}\n", "optimizer.rows.l2=1e-4", "model: {kind: fm}\n" + rest + "optimizer: {rows: {l2: 1e-4}}\n"},
		{"an empty section", "model: {kind: fm}\noptimizer: # c\n", "optimizer.rows.l2=1e-4", "model: {kind: fm}\noptimizer: {rows: {l2: 1e-4}} # c\n"},
		{"an empty value", "model:\n  kind: fm\n  embedding_dim: # c\n", "model.embedding_dim=4", "model:\n  kind: fm\n  embedding_dim: 4 # c\n"},
		{"ends of lines of Windows", "model:\r\n  kind: fm\r\n", "model.embedding_dim=4", "model:\n  kind: fm\n  embedding_dim: 4\n"},
		{"a column behind wide characters", "name: \"\u00e4\u4e16\"\nmodel: {pooling: \"sum\", kind: fm}\n", "model.kind=lr", "name: \"\u00e4\u4e16\"\nmodel: {pooling: \"sum\", kind: lr}\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Edited("job.yaml", []byte(c.file+rest), LoadOptions{Set: []string{c.set}})
			want := c.want
			if !strings.Contains(want, rest) {
				want += rest
			}
			if err != nil || string(got) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// What cannot be written is refused, and not written in another meaning.
func TestEditedRefuses(t *testing.T) {
	t.Parallel()
	const rest = "data: {train: [a.tsv], format: criteo}\noutput: {model_dir: m}\n"
	cases := []struct{ name, file, set string }{
		{"an alias", "model: {kind: dcn, cross_layers: &n 2, embedding_dim: 16}\ntraining: {epochs: *n}\n", "training.epochs=3"},
		{"a list with a comment", "model:\n  kind: dcn\n  hidden_layers: [8, # wide\n    4]\n", "model.hidden_layers=[2]"},
		{"a value that the job refuses", "model: {kind: fm}\n", "model.embedding_dim=-1"},
		{"an override without a value", "model: {kind: fm}\n", "model.embedding_dim"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := Edited("job.yaml", []byte(c.file+rest), LoadOptions{Set: []string{c.set}}); err == nil {
				t.Errorf("%s", got)
			}
		})
	}
}

// Every shipped job file can be edited, and keeps all of its lines but those of the values.
func TestEditedShipped(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	env := func(string) (string, bool) { return "x", true }
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sets := []string{"optimizer.rows.learning_rate=0.0125", "optimizer.dense.learning_rate=0.0025", "optimizer.rows.l2=1e-5", "training.epochs=3", "model.hidden_layers=[7, 5]", "name=tuned"}
		if job, err := Parse(f, data, LoadOptions{Env: env}); err != nil || job.Model.HiddenLayers == nil || job.Optimizer.Rows.Kind == "ftrl" {
			t.Log(f, err)
			sets = []string{"optimizer.rows.learning_rate=0.0125", "training.epochs=3"}
		}
		got, err := Edited(f, data, LoadOptions{Set: sets, Env: env})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		lost := 0
		for line := range strings.Lines(string(data)) {
			if !strings.Contains(string(got), line) {
				lost++
			}
		}
		if lost > len(sets) {
			t.Errorf("%s: %d lines are not what they were:\n%s", f, lost, got)
		}
	}
}
