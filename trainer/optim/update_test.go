package optim

import (
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// TestUpdatesAreTheStep checks that carrying out Updates and Averager elsewhere gives the same bits
// as Step.
func TestUpdatesAreTheStep(t *testing.T) {
	rng := testseed.Rand(t)
	own := RowConfig{Kind: "adam", LearningRate: 0.3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, WeightDecay: 0.1}
	for name, cfg := range denseConfigs {
		cfg.Averaging = 0.9
		var params [2][]*Param
		var dense [2]*Dense
		for i := range dense {
			params[i] = []*Param{param("none", nil), param("w", make([]float32, 40)), param("linear", make([]float32, 30))}
			var err error
			if dense[i], err = NewDense(cfg, params[i], Own{"linear", own}); err != nil {
				t.Fatal(err)
			}
			began := make([]int64, 40)
			for v := range began {
				began[v] = int64(v / 15)
			}
			dense[i].Begin(1, began)
			dense[i].Begin(2, began)
		}
		there := dense[1]
		for step := int64(4); step < 8; step++ {
			for i, p := range params[0] {
				for v := range p.Grad {
					p.Grad[v] = float32(rng.NormFloat64())
				}
				copy(params[1][i].Grad, p.Grad)
			}
			dense[0].Step(step, 0.5)
			averager, _ := there.Averager(step)
			for _, u := range there.Updates(step, 0.5) {
				p := params[1][u.Param]
				var state [2][]float32
				for i, s := range there.Slots(u.Param) {
					state[i] = s[u.Lo:u.Hi]
				}
				u.Step(p.Data[u.Lo:u.Hi], p.Grad[u.Lo:u.Hi], state[0], state[1])
				averager.Step(there.Average(p)[u.Lo:u.Hi], p.Data[u.Lo:u.Hi], nil, nil)
			}
			for i, p := range params[0] {
				if q := params[1][i]; !slices.Equal(p.Data, q.Data) || !slices.Equal(dense[0].Average(p), there.Average(q)) {
					t.Fatalf("%s: parameter %s differs after step %d", name, p.Name, step)
				}
			}
		}
		for i, s := range dense[0].State() {
			if !slices.Equal(s.Data, there.State()[i].Data) {
				t.Errorf("%s: %s differs", name, s.Name)
			}
		}
	}
}
