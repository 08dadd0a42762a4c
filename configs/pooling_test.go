package configs

import "testing"

// TestPoolingOfColumns: a sparse column may have its own pooling, other columns may not.
func TestPoolingOfColumns(t *testing.T) {
	parse := func(columns string) (*Job, error) {
		return Parse("job.yaml", []byte("{data: {train: [a], format: csv, columns: [{name: y, role: label}, {name: a, separator: '|'}, "+columns+"]}, model: {kind: lr}, output: {model_dir: o}}"), LoadOptions{Env: noEnv})
	}
	j, err := parse("{name: b, separator: '|', pooling: mean}")
	if err != nil || j.Data.Columns[1].Pooling != "" || j.Data.Columns[2].Pooling != "mean" {
		t.Errorf("%+v, %v", j, err)
	}
	for _, bad := range []string{"{name: b, pooling: max}", "{name: b, role: dense, pooling: mean}"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s: no fault", bad)
		}
	}
}
