package configs

import "testing"

// TestDefaultRates: lr and fm, whose dense parameters are linear weights, learn faster than networks.
func TestDefaultRates(t *testing.T) {
	for _, c := range []struct {
		set         []string
		dense, rows float64
	}{
		{[]string{"model.kind=lr"}, 0.01, 0.1},
		{[]string{"model.kind=lr", "optimizer.rows.kind=rowwise_adagrad", "optimizer.dense.kind=adamw"}, 0.01, 0.1},
		{[]string{"model.kind=lr", "optimizer.rows.kind=ftrl", "optimizer.dense.kind=sgd"}, 0.01, 0.05},
		{[]string{"model.kind=deepfm"}, 0.001, 0.05},
		{[]string{"model.kind=fm"}, 0.01, 0.05},
		{[]string{"model.kind=fm", "optimizer.rows.kind=adam", "optimizer.dense.kind=adagrad"}, 0.01, 0.001},
	} {
		j, err := Parse("job.yaml", []byte("{data: {train: [a], format: criteo}, output: {model_dir: o}}"), LoadOptions{Env: noEnv, Set: c.set})
		if err != nil || j.Optimizer.Dense.LearningRate != c.dense || j.Optimizer.Rows.LearningRate != c.rows {
			t.Errorf("%v: %+v, %v", c.set, j.Optimizer, err)
		}
	}
}
