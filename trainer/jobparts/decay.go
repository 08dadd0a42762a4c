package jobparts

import (
	"aibox/configs"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// NewDecay returns the timeline of the rows of a job that begins after a step, with rows of a model
// with the timeline before. It is nil if the rows do not decay. renew reports whether all rows have
// to get the clock of that step.
func NewDecay(job *configs.Job, rows *optim.Rows, before *decay.Timeline, after int64) (now *decay.Timeline, renew bool, err error) {
	if !rows.Decays() {
		return nil, false, nil
	}
	h, renew := before.History().Continued(after, decay.RatesOf(rows), ScheduleConfig(job.Optimizer.Schedule))
	now, err = decay.NewTimeline(h)
	return now, renew, err
}
