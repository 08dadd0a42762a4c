package optim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLinearRows: a linear weight with an optimizer of its own, and the other values of its row,
// learn as if each were a row for itself, whatever the pair of optimizers.
func TestLinearRows(t *testing.T) {
	config := func(kind string, rate float64) RowConfig {
		return RowConfig{Kind: kind, LearningRate: rate, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01, FTRLBeta: 1, FTRLL1: 0.1}
	}
	kinds := []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"}
	for _, linear := range kinds {
		for _, kind := range kinds {
			both, err := NewLinearRows(config(linear, 0.3), config(kind, 0.1), 5)
			if err != nil {
				t.Fatal(err)
			}
			one, err := NewRows(config(linear, 0.3), 1)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := NewRows(config(kind, 0.1), 4)
			if err != nil {
				t.Fatal(err)
			}
			if both.StateDim() != one.StateDim()+rest.StateDim() || both.HasSteps() != (linear == "adam" || kind == "adam") {
				t.Fatalf("%s, %s: %d words of state, steps %v", linear, kind, both.StateDim(), both.HasSteps())
			}
			values := []float32{0.5, -1, 0, 2, 0.25}
			a, b := slices.Clone(values[:1]), slices.Clone(values[1:])
			state, stateA, stateB := make([]float32, both.StateDim()), make([]float32, one.StateDim()), make([]float32, rest.StateDim())
			both.Init(values, state)
			one.Init(a, stateA)
			rest.Init(b, stateB)
			rng := rand.New(rand.NewPCG(3, 4))
			for step := int64(1); step <= 20; step++ {
				grad := make([]float32, 5)
				for i := range grad {
					grad[i] = float32(rng.NormFloat64())
				}
				update(both, step, 0.5, values, state, grad)
				update(one, step, 0.5, a, stateA, grad[:1])
				update(rest, step, 0.5, b, stateB, grad[1:])
			}
			if !slices.Equal(values, slices.Concat(a, b)) || !slices.Equal(state, slices.Concat(stateA, stateB)) {
				t.Errorf("%s, %s: %v with state %v; apart %v, %v with %v, %v", linear, kind, values, state, a, b, stateA, stateB)
			}
		}
	}
	if _, err := NewLinearRows(config("nonsense", 1), config("sgd", 1), 3); err == nil {
		t.Error("no error")
	}
	if _, err := NewLinearRows(config("sgd", 1), config("sgd", 1), 1); err == nil {
		t.Error("a row of a linear weight alone")
	}
}
