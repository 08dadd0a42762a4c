package runstate

import (
	"fmt"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/metrics"
)

// Stopping decides after each epoch whether it is the best so far, and whether training has gone on
// without progress for long enough to stop. The best epoch is the one with the best metric;
// min_delta only affects what counts as progress.
type Stopping struct {
	Best      *float64 `json:"best"`      // larger is better; nil if no epoch has ended
	Reference *float64 `json:"reference"` // the value that progress is measured from
	InVain    int      `json:"in_vain"`   // epochs since the last progress
}

// Judge judges the evaluation after an epoch. It fails if the metric is undefined, since then
// epochs cannot be compared.
func (s *Stopping) Judge(cfg *configs.EarlyStopping, where string, report *metrics.Report) (best bool, err error) {
	v := report.AUC
	if cfg.Metric == "log_loss" {
		v = -report.LogLoss
	}
	if !v.Defined() {
		return false, undefinedError(cfg.Metric, where, report)
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

// undefinedError returns the error for a metric that is undefined, so that it cannot tell which
// epoch is the best.
func undefinedError(metric, where string, report *metrics.Report) error {
	why := fmt.Sprintf("its %d examples have the base rate %v", report.Examples, report.BaseRate)
	switch {
	case report.WeightSum == 0:
		why = fmt.Sprintf("all of its %d examples have weight 0", report.Examples)
	case report.BaseRate == 0 || report.BaseRate == 1:
		why = fmt.Sprintf("all of its %d examples have label %v, and it needs both labels", report.Examples, report.BaseRate)
	}
	return errkind.Errorf(errkind.Data, "%s: %s, by which training.early_stopping compares epochs, is undefined: %s", where, metric, why)
}

// Enough reports whether training has gone on without progress for long enough. Without cfg it
// never has.
func (s *Stopping) Enough(cfg *configs.EarlyStopping) bool {
	return cfg != nil && s.InVain >= cfg.Patience
}
