package trainer

import (
	"aibox/trainer/engine"
	"aibox/trainer/metrics"
)

// online keeps the online metrics (progressive validation): every mini-batch is scored
// by the model before it is trained on. They describe the data after negative
// down-sampling, as training sees them.
//
// A line of the metrics file may be written after every mini-batch. Its AUC comes from
// a histogram of few bins, whose error bound is known; the AUC of the whole epoch comes
// from a histogram with many bins.
type online struct {
	All    *metrics.Accumulator `json:"all"`    // the whole epoch
	Sofar  *metrics.Accumulator `json:"sofar"`  // the whole epoch up to the last line, with few bins
	Window *metrics.Accumulator `json:"window"` // since the last line, with few bins
	Lines  int64                `json:"lines"`  // mini-batches since the last line
}

// lineBins bounds the cost of a line: the AUC from 2,048 bins, each of which is a logit
// range of 1/64, takes some 20 microseconds.
const lineBins = 2048

func newOnline() online {
	return online{
		All:    metrics.New(metrics.Options{}),
		Sofar:  metrics.New(metrics.Options{Bins: lineBins}),
		Window: metrics.New(metrics.Options{Bins: lineBins}),
	}
}

// clone returns a copy.
func (o online) clone() online {
	if o.All == nil { // between two epochs
		return o
	}
	return online{All: o.All.Clone(), Sofar: o.Sofar.Clone(), Window: o.Window.Clone(), Lines: o.Lines}
}

// scored counts a mini-batch that was scored and trained on.
func (r *run) scored(res *engine.Result) error {
	o, b := &r.state.Online, res.Batch
	if err := metrics.AddTo([]*metrics.Accumulator{o.All, o.Window}, res.Logits, b.Labels, b.Weights, nil); err != nil {
		return err
	}
	o.Lines++
	if o.Lines >= r.job.Output.LogEvery {
		return r.metricsLine(res.Step)
	}
	return nil
}

// metricsLine writes the window's metrics after a step and starts the next window.
func (r *run) metricsLine(step int64) error {
	o := &r.state.Online
	o.Lines = 0
	w := o.Window.Report()
	r.state.Recent = &w
	o.Sofar.MergeScores(o.Window)
	o.Window.Reset()
	r.opts.Status.Metrics(float64(w.LogLoss), float64(o.Sofar.AUC()))
	return r.reports.training(r.state.Epoch, step, r.state.Examples, w)
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
	*o = online{}
	return report, nil
}
