package trainer

import (
	"aibox/trainer/densefile"
	"aibox/trainer/metrics"
	"math"
	"testing"
)

// TestWarmStartKeepsCalibration checks that a model that starts from one which kept another share
// of the negatives begins with the same predictions: what is added to its logits because of the
// share is subtracted from its bias and the bias's average.
func TestWarmStartKeepsCalibration(t *testing.T) {
	for kind, set := range map[string][]string{"lr": nil, "deepfm": {averaging}} {
		for _, shares := range [][2]string{{"0.2", "1"}, {"1", "0.2"}, {"0.2", "0.2"}} {
			first := job(t, kind, append(set, "data.negative_sampling="+shares[0])...)
			train(t, first)
			// The learning rate is next to nothing.
			next := job(t, kind, append(set, "data.negative_sampling="+shares[1], "optimizer.schedule={warmup_steps: 100000000}", "data.limit=64",
				"training.accept_diverged=true")...)
			next.Training.WarmStart = first.Output.ModelDir
			train(t, next)
			before, after := load(t, first.Output.ModelDir), load(t, next.Output.ModelDir)
			bias := before.Network.OutputBias()
			want := bias.Data[0]
			if last := before.Saved.Tensor(densefile.OptimizerPrefix + bias.Name + "/unaveraged"); last != nil {
				want += 0.1 * (last.Data[0] - want) // one more step is part of the average
			}
			want += metrics.LogitShift(before.Saved.KeptShare) - metrics.LogitShift(after.Saved.KeptShare)
			if have := after.Network.OutputBias().Data[0]; math.Abs(float64(have-want)) > 1e-4 {
				t.Errorf("%s, shares %v: the bias is %v, want %v", kind, shares, have, want)
			}
		}
	}
}
