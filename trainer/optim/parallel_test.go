package optim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
)

// TestDenseThreads takes steps on several threads, with parameters that are cut anywhere and
// values whose state began at different steps.
func TestDenseThreads(t *testing.T) {
	defer kernel.SetThreads(0)
	seed := testseed.Of(t)
	for kind := range slotNames {
		run := func(threads int) (all []float32) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			kernel.SetThreads(threads)
			var params []*Param
			for i, n := range []int{3, 3*stepGrain + 5, 1, stepGrain, 77} {
				params = append(params, &Param{Name: fmt.Sprint(i), Shape: []int{n}, Data: make([]float32, n), Grad: make([]float32, n)})
			}
			d, err := NewDense(DenseConfig{Kind: kind, LearningRate: 0.1, L2: 0.01, WeightDecay: 0.01, Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, params)
			if err != nil {
				t.Fatal(err)
			}
			began := make([]int64, len(params[1].Data))
			for i := range began {
				began[i] = int64(i / 1000 % 3)
			}
			d.Begin(1, began)
			for step := range int64(3) {
				for _, p := range params {
					for i := range p.Grad {
						p.Grad[i] = float32(random.NormFloat64())
					}
				}
				d.Step(4+step, 1)
			}
			for i, p := range params {
				all = slices.Concat(all, p.Data, d.slots[i][0], d.slots[i][1])
			}
			return all
		}
		if want := run(1); !slices.Equal(run(3), want) {
			t.Errorf("%s: three threads give other values than one", kind)
		}
	}
}
