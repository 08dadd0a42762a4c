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
	run    *run
	epoch  int
	all    *metrics.Accumulator // the whole epoch
	sofar  *metrics.Accumulator // the whole epoch up to the last line, with few bins
	window *metrics.Accumulator // since the last line, with few bins
	lines  int64                // mini-batches since the last line
}

// lineBins bounds the cost of a line: the AUC from 2,048 bins, each of which is a logit
// range of 1/64, takes some 20 microseconds.
const lineBins = 2048

func newOnline(r *run, epoch int) *online {
	return &online{
		run: r, epoch: epoch,
		all:    metrics.New(metrics.Options{}),
		sofar:  metrics.New(metrics.Options{Bins: lineBins}),
		window: metrics.New(metrics.Options{Bins: lineBins}),
	}
}

func (o *online) add(res *engine.Result) error {
	b := res.Batch
	for _, acc := range []*metrics.Accumulator{o.all, o.window} {
		if err := acc.Add(res.Logits, b.Labels, b.Weights, nil); err != nil {
			return err
		}
	}
	o.lines++
	if o.lines >= o.run.job.Output.LogEvery {
		return o.line()
	}
	return nil
}

// line writes the window's metrics and starts the next window.
func (o *online) line() error {
	o.lines = 0
	w := o.window.Report()
	o.sofar.MergeScores(o.window)
	o.window.Reset()
	o.run.opts.Status.metrics(float64(w.LogLoss), float64(o.sofar.AUC()))
	return o.run.reports.training(o.epoch, o.run.state.Step, o.run.examples, w)
}

// end returns the epoch's metrics.
func (o *online) end() (metrics.Report, error) {
	if o.lines > 0 {
		if err := o.line(); err != nil {
			return metrics.Report{}, err
		}
	}
	return o.all.Report(), nil
}
