package trainer

import (
	"math"
	"os"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/metrics"
)

func TestStopping(t *testing.T) {
	cfg := &configs.EarlyStopping{Metric: "log_loss", Patience: 2, MinDelta: 0.1}
	var s stopping
	for i, step := range []struct {
		loss         metrics.Value
		best, enough bool
	}{
		{0.9, true, false},
		{0.7, true, false},  // progress
		{0.65, true, false}, // the best so far, though no progress
		{0.66, false, true}, // twice in vain
	} {
		best, err := s.epoch(cfg, "data.eval", &metrics.Report{LogLoss: step.loss})
		if err != nil || best != step.best || s.enough(cfg) != step.enough {
			t.Errorf("epoch %d: best %v, enough %v (%v), want %v and %v", i+1, best, s.enough(cfg), err, step.best, step.enough)
		}
	}
	cfg = &configs.EarlyStopping{Metric: "auc", Patience: 1}
	for want, report := range map[string]metrics.Report{
		"all of its 9 examples have label 0":  {WeightSum: 9},
		"all of its 9 examples have label 1":  {WeightSum: 9, BaseRate: 1},
		"all of its 9 examples have weight 0": {},
	} {
		report.AUC, report.Examples = metrics.Value(math.NaN()), 9
		_, err := new(stopping).epoch(cfg, "data.eval", &report)
		if err == nil || errkind.Of(t.Context(), err) != errkind.Data || !strings.HasPrefix(err.Error(), "data.eval: auc") || !strings.Contains(err.Error(), want) {
			t.Errorf("undefined metric: %v, want %q", err, want)
		}
	}
}

// TestStoppingNeedsBothLabels: data.eval of one label are at fault, not the job.
func TestStoppingNeedsBothLabels(t *testing.T) {
	eval := t.TempDir() + "/eval.csv"
	j := biasJob(t, "lr", rowsOf(9, 9, 1, 1), "training.early_stopping.metric=auc", "training.epochs=2", "data.eval=["+eval+"]")
	if err := os.WriteFile(eval, []byte("label,weight,x,user,item\n0,1,0,u1,i1\n0,1,0,u2,i1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Train(t.Context(), j, quiet)
	if err == nil || errkind.Of(t.Context(), err) != errkind.Data || !strings.Contains(err.Error(), "data.eval: auc, by which training.early_stopping compares epochs, is undefined: all of its 2 examples have label 0") {
		t.Errorf("%v", err)
	}
}
