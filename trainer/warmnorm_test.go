package trainer

import (
	"math"
	"testing"

	"aibox/trainer/densefile"
)

// TestWarmStartKeepsNormalization: where embeddings become longer, the units of the bottom network
// that both models have keep their running statistics, as they keep their weights.
func TestWarmStartKeepsNormalization(t *testing.T) {
	set := func(layers string) []string {
		return []string{"model.batch_norm=true", "model.bottom_layers=" + layers}
	}
	dir, _ := firstNight(t, "dlrm", set("[8, 4]")...)
	now := stillNight(t, "dlrm", dir, append(set("[8, 6]"), "model.embedding_dim=6")...)
	for _, name := range []string{"running_mean", "running_variance"} {
		before, after := load(t, dir).Saved.Tensor(densefile.BufferPrefix+"bottom/1/norm/"+name).Data, now.Saved.Tensor(densefile.BufferPrefix+"bottom/1/norm/"+name).Data
		// One mini-batch moves the average by a tenth of the way, or a hundredth.
		for i, v := range before {
			if d := math.Abs(float64(after[i] - v)); d > 0.2*max(0.5, math.Abs(float64(v))) {
				t.Errorf("%s is %v, was %v", name, after, before)
				break
			}
		}
	}
}
