package optim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/kernel"
)

// TestOwnTableL2: a parameter that every step uses has L2 of the table as any other.
func TestOwnTableL2(t *testing.T) {
	var ended [2][]float32
	for i, c := range []RowConfig{{L2: 0.3}, {L2: 0.1, TableL2: 0.2}} {
		c.Kind, c.LearningRate, c.Epsilon = "adagrad", 0.3, 1e-8
		p := param("linear", []float32{0.5, -1})
		d, err := NewDense(denseConfigs["adam"], []*Param{p}, Own{"linear", c})
		if err != nil {
			t.Fatal(err)
		}
		for k := int64(1); k < 9; k++ {
			p.Grad[0], p.Grad[1] = float32(k%3)-1, float32(k%2)
			d.Step(k, 1)
		}
		ended[i] = p.Data
	}
	for i, want := range ended[0] {
		if diff := ended[1][i] - want; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("value %d is %v, want %v", i, ended[1][i], want)
		}
	}
}

// TestOwn: a parameter with an optimizer of its own learns as rows of one value each that occur in every
// step, also where some of its values began later, and the other parameters as without it.
func TestOwn(t *testing.T) {
	for _, kind := range []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"} {
		c := RowConfig{Kind: kind, LearningRate: 0.3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01, FTRLBeta: 1, FTRLL1: 0.1}
		if kind != "ftrl" {
			c.WeightDecay = 0.1
		}
		start := []float32{0.5, -1, 0, 2, 0.25}
		params := []*Param{param("linear", slices.Clone(start)), param("other", []float32{1, 2})}
		d, err := NewDense(denseConfigs["adam"], params, Own{"linear", c}, Own{"missing", c})
		if err != nil {
			t.Fatal(err)
		}
		alone := param("other", []float32{1, 2})
		e, err := NewDense(denseConfigs["adam"], []*Param{alone})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := NewRows(c, 1)
		if err != nil {
			t.Fatal(err)
		}
		began := []int64{0, 0, 4, 4, 4}
		d.Begin(0, began)
		states := make([][]float32, len(start))
		want := slices.Clone(start)
		for i := range want {
			states[i] = make([]float32, rows.StateDim())
			rows.Init(want[i:i+1], states[i])
		}
		rng := rand.New(rand.NewPCG(5, 6))
		const scale = 0.5
		for k := int64(5); k < 25; k++ {
			for i := range want {
				params[0].Grad[i] = float32(rng.NormFloat64())
			}
			for i := range alone.Grad {
				alone.Grad[i] = float32(rng.NormFloat64())
			}
			copy(params[1].Grad, alone.Grad)
			d.Step(k, scale)
			e.Step(k, scale)
			for i := range want {
				_, rate := rows.DecayRates()
				kernel.Scale(float32(1-rate*scale), want[i:i+1])
				s := rows.Step(k-began[i], scale)
				s.Update(want[i:i+1], states[i], params[0].Grad[i:i+1])
			}
		}
		if !slices.Equal(params[0].Data, want) || !slices.Equal(params[1].Data, alone.Data) {
			t.Errorf("%s: %v and %v, want %v and %v", kind, params[0].Data, params[1].Data, want, alone.Data)
		}
		words := 0
		for _, s := range d.State() {
			words += len(s.Data)
		}
		if want := len(start)*rows.StateDim() + 4; words != want {
			t.Errorf("%s: %d words of state, want %d", kind, words, want)
		}
	}
	if _, err := NewDense(denseConfigs["adam"], []*Param{param("x", []float32{1})}, Own{"x", RowConfig{Kind: "nonsense"}}); err == nil {
		t.Error("no error")
	}
}
