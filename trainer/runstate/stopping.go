package runstate

import (
	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/metrics"
)

// Stopping decides after each epoch whether it is the best so far, and whether training
// has gone on without progress for long enough to stop. The best epoch is the one with
// the best metric; min_delta only decides what counts as progress.
type Stopping struct {
	Best      *float64 `json:"best"`      // larger is better; nil: no epoch has ended
	Reference *float64 `json:"reference"` // value that progress is measured from
	InVain    int      `json:"in_vain"`   // epochs since the last progress
}

// Judge judges the evaluation after an epoch. It fails if the metric is undefined,
// since epochs cannot be compared then.
func (s *Stopping) Judge(cfg *configs.EarlyStopping, where string, report *metrics.Report) (best bool, err error) {
	v := report.AUC
	if cfg.Metric == "log_loss" {
		v = -report.LogLoss
	}
	if !v.Defined() {
		return false, errkind.Errorf(errkind.Usage, "training.early_stopping: %s is undefined on %s (%d examples, base rate %v): it needs examples of both labels", cfg.Metric, where, report.Examples, report.BaseRate)
	}
	value := float64(v)
	if s.Best == nil || value > *s.Best {
		s.Best, best = &value, true
	}
	if s.Reference == nil || value > *s.Reference+cfg.MinDelta {
		s.Reference, s.InVain = &value, 0
	} else {
		s.InVain++
	}
	return best, nil
}

// Enough reports whether training has gone on without progress for long enough. Without
// cfg it never has.
func (s *Stopping) Enough(cfg *configs.EarlyStopping) bool {
	return cfg != nil && s.InVain >= cfg.Patience
}
