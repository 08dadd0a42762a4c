package trainer

import (
	"fmt"
	"math"

	"aibox/configs"
	"aibox/trainer/metrics"
)

// stopping decides after each epoch whether it is the best so far, and whether training
// has gone on without progress for long enough to stop. The best epoch is the one with
// the best metric; min_delta only decides what counts as progress.
type stopping struct {
	cfg       *configs.EarlyStopping // nil: never stop
	best      float64                // larger is better
	reference float64                // value that progress is measured from
	inVain    int                    // epochs since the last progress
}

func newStopping(cfg *configs.EarlyStopping) *stopping {
	return &stopping{cfg: cfg, best: math.Inf(-1), reference: math.Inf(-1)}
}

// epoch judges the evaluation after an epoch. It fails if the metric is undefined,
// since epochs cannot be compared then.
func (s *stopping) epoch(report *metrics.Report) (best, enough bool, err error) {
	v := report.AUC
	if s.cfg.Metric == "log_loss" {
		v = -report.LogLoss
	}
	if !v.Defined() {
		return false, false, &OptionError{fmt.Errorf("training.early_stopping: %s is undefined on data.eval (%d examples, base rate %v): it needs examples of both labels", s.cfg.Metric, report.Examples, report.BaseRate)}
	}
	value := float64(v)
	if value > s.best {
		s.best, best = value, true
	}
	if value > s.reference+s.cfg.MinDelta {
		s.reference, s.inVain = value, 0
	} else {
		s.inVain++
	}
	return best, s.inVain >= s.cfg.Patience, nil
}
