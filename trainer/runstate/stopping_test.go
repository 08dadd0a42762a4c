package runstate

import (
	"math"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/metrics"
)

func TestStopping(t *testing.T) {
	cfg := &configs.EarlyStopping{Metric: "log_loss", Patience: 2, MinDelta: 0.1}
	var s Stopping
	for i, step := range []struct {
		loss         metrics.Value
		best, enough bool
	}{
		{0.9, true, false},
		{0.7, true, false},  // progress
		{0.65, true, false}, // the best so far, though no progress
		{0.66, false, true}, // twice in vain
	} {
		best, err := s.Judge(cfg, "data.eval", &metrics.Report{LogLoss: step.loss})
		if err != nil || best != step.best || s.Enough(cfg) != step.enough {
			t.Errorf("epoch %d: best %v, enough %v (%v), want %v and %v", i+1, best, s.Enough(cfg), err, step.best, step.enough)
		}
	}
	cfg = &configs.EarlyStopping{Metric: "auc", Patience: 1}
	if _, err := new(Stopping).Judge(cfg, "data.eval", &metrics.Report{AUC: metrics.Value(math.NaN())}); errkind.Of(t.Context(), err) != errkind.Usage {
		t.Errorf("undefined metric: %v", err)
	}
}
