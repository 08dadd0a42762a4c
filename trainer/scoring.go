package trainer

import (
	"aibox/internal/panics"
	"aibox/trainer/engine"
	"aibox/trainer/metrics"
	"aibox/trainer/runstate"
)

// scoring is a mini-batch that is added to the online metrics while the next one is trained. One
// thread takes about as long for that as a device may take for the whole step.
type scoring struct {
	logits, labels, weights []float32 // copies, since the caller reuses its memory
	step, examples          int64     // of the run, after this mini-batch
	begun                   bool
	outcome                 chan error
}

// scored starts counting a mini-batch that was scored and trained on, after the previous one is
// counted. Its error may come with a later call, at the latest with that of counted.
func (r *run) scored(res *engine.Result) error {
	if err := r.counted(); err != nil {
		return err
	}
	s, o, b := &r.scoring, &r.state.Online, res.Batch
	s.logits, s.labels = append(s.logits[:0], res.Logits...), append(s.labels[:0], b.Labels...)
	weights := b.Weights
	if weights != nil {
		s.weights = append(s.weights[:0], weights...)
		weights = s.weights
	}
	if s.outcome == nil {
		s.outcome = make(chan error, 1)
	}
	s.step, s.examples, s.begun = res.Step, r.state.Examples, true
	const where = "counting scores"
	panics.Go(where, func() {
		s.outcome <- panics.Do(where, func() error { return o.Add(s.logits, s.labels, weights) })
	})
	return nil
}

// counted waits until all scored mini-batches are counted, and writes a line of metrics if one is
// due.
func (r *run) counted() error {
	s := &r.scoring
	if !s.begun {
		return nil
	}
	s.begun = false
	if err := <-s.outcome; err != nil {
		return err
	}
	if r.state.Online.Lines >= r.job.Output.LogEvery {
		return r.metricsLine(s.step, s.examples)
	}
	return nil
}

// metricsLine writes the metrics of the window after a step and the given number of examples, and
// starts the next window.
func (r *run) metricsLine(step, examples int64) error {
	w, auc := r.state.Online.Line()
	r.state.Recent = &w
	r.checkStartRate(w.Examples, examples)
	r.opts.Status.Metrics(float64(w.LogLoss), float64(auc))
	return r.reports.Metrics("train", r.state.Epoch, step, examples, w)
}

// epochMetrics ends an epoch and returns its metrics.
func (r *run) epochMetrics() (metrics.Report, error) {
	o := &r.state.Online
	if o.Lines > 0 {
		if err := r.metricsLine(r.state.Engine.Step, r.state.Examples); err != nil {
			return metrics.Report{}, err
		}
	}
	report := o.All.Report()
	*o = runstate.Online{}
	return report, nil
}
