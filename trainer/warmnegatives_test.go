package trainer

import (
	"math"
	"slices"
	"testing"
)

// TestWarmStartWithAnotherShareOfNegatives: predictions are those of a night with the same share,
// whether the network is averaged or not.
func TestWarmStartWithAnotherShareOfNegatives(t *testing.T) {
	for _, set := range [][]string{nil, {averaging}} {
		dir, _ := firstNight(t, "fm", append(slices.Clone(set), "data.negative_sampling=0.2")...)
		logLoss := func(share string) float64 {
			now := stillNight(t, "fm", dir, append(slices.Clone(set), "data.negative_sampling="+share)...)
			e, err := now.Evaluate(t.Context(), now.Job.Data.Eval)
			if err != nil {
				t.Fatal(err)
			}
			return float64(e.Metrics.LogLoss)
		}
		want := logLoss("0.2")
		for _, share := range []string{"1", "0.5"} {
			if got := logLoss(share); math.Abs(got-want) > 1e-4 {
				t.Errorf("from 0.2 to %s: log loss %v, want %v", share, got, want)
			}
		}
	}
}
