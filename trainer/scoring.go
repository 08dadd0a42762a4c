package trainer

import (
	"aibox/trainer/engine"
	"aibox/trainer/metrics"
	"aibox/trainer/runstate"
)

// scored counts a mini-batch that was scored and trained on.
func (r *run) scored(res *engine.Result) error {
	o, b := &r.state.Online, res.Batch
	if err := o.Add(res.Logits, b.Labels, b.Weights); err != nil {
		return err
	}
	if o.Lines >= r.job.Output.LogEvery {
		return r.metricsLine(res.Step)
	}
	return nil
}

// metricsLine writes the window's metrics after a step and starts the next window.
func (r *run) metricsLine(step int64) error {
	w, auc := r.state.Online.Line()
	r.state.Recent = &w
	r.opts.Status.Metrics(float64(w.LogLoss), float64(auc))
	return r.reports.Training(r.state.Epoch, step, r.state.Examples, w)
}

// epochMetrics ends an epoch and returns its metrics.
func (r *run) epochMetrics() (metrics.Report, error) {
	o := &r.state.Online
	if o.Lines > 0 {
		if err := r.metricsLine(r.state.Engine.Step); err != nil {
			return metrics.Report{}, err
		}
	}
	report := o.All.Report()
	*o = runstate.Online{}
	return report, nil
}
