package configs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestDefaultOfMissing: a dense column has an indicator wherever its format has empty cells, and the
// column that would be the indicator is not another one. What config show prints says the same.
func TestDefaultOfMissing(t *testing.T) {
	for _, c := range []struct{ format, columns, want string }{
		{"csv", "{name: y, role: label}, {name: a}, {name: x, role: dense}", "indicator"},
		{"tsv", "{name: y, role: label}, {name: a}, {name: x, role: dense, transform: [standardize]}", "indicator"},
		{"parquet", "{name: y, role: label}, {name: a}, {name: x, role: dense}", "indicator"},
		{"libsvm", "{name: a, role: sparse, range: [3, 9]}, {name: x, role: dense, range: [1, 1]}", "0"},
		{"libffm", "{name: a, field: 0}, {name: x, role: dense, field: 1}", "0"},
		{"criteo", "", "indicator"},
		{"criteo", "{name: I1, missing: 3}", "3"},
		{"csv", "{name: y, role: label}, {name: a}, {name: x, role: dense, missing: -1e3}", "-1000"},
		{"csv", "{name: y, role: label}, {name: a}, {name: x, role: dense, missing: 0}, {name: x.missing, role: dense}", "0"},
		{"csv", "{name: y, role: label}, {name: a}, {name: x, role: dense}, {name: x.missing, role: dense}", "0"},
		{"csv", "{name: y, role: label}, {name: a}, {name: x, role: dense, transform: [{bucketize: {boundaries: [1]}}]}", ""},
	} {
		text := fmt.Sprintf("{data: {train: [a], format: %s, columns: [%s]}, model: {kind: lr}, output: {model_dir: o}}", c.format, c.columns)
		for range 2 {
			j, err := Parse("job.yaml", []byte(text), LoadOptions{Env: noEnv})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, column := range j.Data.Columns {
				if (column.Name == "x" || column.Name == "I1") && string(column.Missing) != c.want {
					t.Errorf("%s: missing is %q, want %q", text, column.Missing, c.want)
				}
			}
			var shown bytes.Buffer
			if err := j.Show(&shown); err != nil {
				t.Fatal(err)
			}
			text = shown.String()
		}
	}
	_, err := Parse("job.yaml", []byte("{data: {train: [a], format: csv, columns: [{name: y, role: label}, {name: a}, {name: x, role: dense, missing: indicator}, {name: x.missing}]}, model: {kind: lr}, output: {model_dir: o}}"), LoadOptions{Env: noEnv})
	if err == nil || !strings.Contains(err.Error(), `data.columns[2].missing: "x.missing" is the name of another column`) {
		t.Errorf("%v", err)
	}
}

func TestNumberOrWord(t *testing.T) {
	for text, want := range map[string]string{"auto": "auto", "-2": "-2", "1_0.5": "10.5", "1e1": "10", "0": "0"} {
		j, err := Parse("job.yaml", []byte("{data: {train: [a], format: criteo}, model: {kind: lr}, output: {model_dir: o}}"), LoadOptions{Env: noEnv, Set: []string{"model.initial_bias=" + text}})
		if err != nil || string(j.Model.InitialBias) != want {
			t.Errorf("%s: %v, %v", text, j, err)
		}
	}
}
