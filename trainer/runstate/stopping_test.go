package runstate

import (
	"math"
	"strings"
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
	for want, report := range map[string]metrics.Report{
		"all of its 9 examples have label 0":  {WeightSum: 9},
		"all of its 9 examples have label 1":  {WeightSum: 9, BaseRate: 1},
		"all of its 9 examples have weight 0": {},
	} {
		report.AUC, report.Examples = metrics.Value(math.NaN()), 9
		_, err := new(Stopping).Judge(cfg, "data.eval", &report)
		if err == nil || errkind.Of(t.Context(), err) != errkind.Data || !strings.HasPrefix(err.Error(), "data.eval: auc") || !strings.Contains(err.Error(), want) {
			t.Errorf("undefined metric: %v, want %q", err, want)
		}
	}
}
