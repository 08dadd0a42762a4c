package trainer

import (
	"math"
	"testing"

	"aibox/trainer/inference"
	"aibox/trainer/jobparts"
)

// TestRowsOfOtherValuesDecayOnce: rows whose linear weight decays in a way of its own go to a model
// without one and back. The values that both models have are those that the earlier model had for
// its last step, and new ones have not decayed.
func TestRowsOfOtherValuesDecayOnce(t *testing.T) {
	own := []string{"optimizer.linear={kind: adagrad, learning_rate: 0.05, weight_decay: 0.01}", "optimizer.rows={kind: adagrad, learning_rate: 0.05, weight_decay: 0.5}"}
	plain := []string{"optimizer.rows={kind: adagrad, learning_rate: 0.05, weight_decay: 0.5}"}
	for name, c := range map[string]struct {
		kinds      [2]string
		before     []string
		now        []string
		from, into int // where the values begin that both have
		dim        int
	}{
		"without linear weights": {[2]string{"fm", "dlrm"}, own, plain, 1, 0, 4},
		"with linear weights":    {[2]string{"dlrm", "fm"}, plain, own, 0, 1, 4},
		"longer":                 {[2]string{"fm", "fm"}, plain, append(plain, "model.embedding_dim=6"), 0, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := firstNight(t, c.kinds[0], c.before...)
			before, _ := settledRows(t, dir)
			now := stillNight(t, c.kinds[1], dir, append(c.now, "sparse_table.init_stddev=0.25")...)
			after, _ := settledRows(t, now.Saved.Dir)
			p, err := jobparts.Make(now.Job)
			if err != nil {
				t.Fatal(err)
			}
			init := jobparts.NewRowInit(now.Table.Layout(), p.Rows, now.Job.Seed, 0.25)
			fresh := make([]float32, now.Table.Layout().Words())
			for key, values := range before {
				got := after[key]
				init(key, fresh)
				for i, v := range now.Table.Layout().Values(fresh) {
					if k := i - c.into; k >= 0 && k < c.dim {
						v = values[c.from+k]
					}
					if math.Abs(float64(got[i]-v)) > 1e-4*max(1e-2, math.Abs(float64(v))) {
						t.Fatalf("value %d of row %x is %v, want %v", i, key, got[i], v)
					}
				}
			}
		})
	}
}

// stillNight is a night that starts from the model of dir and trains next to nothing: its only
// mini-batch has a millionth of the learning rate.
func stillNight(t *testing.T, kind, dir string, set ...string) *inference.Model {
	t.Helper()
	j := job(t, kind, append([]string{"optimizer.schedule={warmup_steps: 1000000}", "data.limit=64", "data.shuffle_buffer=0"}, set...)...)
	j.Training.WarmStart = dir
	train(t, j)
	return load(t, j.Output.ModelDir)
}
