package runstate

import (
	"aibox/trainer/metrics"
)

// Online has the online metrics (progressive validation): the model scores every mini-batch before
// it is trained on. They describe the data after negative down-sampling, as training sees them.
//
// A line of the metrics file may be written after every mini-batch. Its AUC comes from a histogram
// with few bins, whose error bound is known. The AUC of the whole epoch comes from a histogram with
// many bins.
type Online struct {
	All    *metrics.Accumulator `json:"all"`    // the whole epoch
	Sofar  *metrics.Accumulator `json:"sofar"`  // the whole epoch up to the last line, with few bins
	Window *metrics.Accumulator `json:"window"` // since the last line, with few bins
	Lines  int64                `json:"lines"`  // mini-batches since the last line
}

// lineBins bounds the cost of a line: the AUC from 2,048 bins, each a logit range of 1/64, takes
// some 20 microseconds.
const lineBins = 2048

// NewOnline returns empty metrics for an epoch.
func NewOnline() Online {
	return Online{
		All:    metrics.New(metrics.Options{}),
		Sofar:  metrics.New(metrics.Options{Bins: lineBins}),
		Window: metrics.New(metrics.Options{Bins: lineBins}),
	}
}

// Clone returns a copy.
func (o Online) Clone() Online {
	if o.All == nil { // between two epochs
		return o
	}
	return Online{All: o.All.Clone(), Sofar: o.Sofar.Clone(), Window: o.Window.Clone(), Lines: o.Lines}
}

// Add counts a scored mini-batch that is trained on.
func (o *Online) Add(logits, labels, weights []float32) error {
	if err := metrics.AddTo([]*metrics.Accumulator{o.All, o.Window}, logits, labels, weights, nil); err != nil {
		return err
	}
	o.Lines++
	return nil
}

// Line returns the metrics since the last line and the AUC of the epoch so far, and starts the next
// line.
func (o *Online) Line() (window metrics.Report, auc metrics.Value) {
	o.Lines = 0
	window = o.Window.Report()
	o.Sofar.MergeScores(o.Window)
	o.Window.Reset()
	return window, o.Sofar.AUC()
}
