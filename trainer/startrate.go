package trainer

import (
	"fmt"
	"math"

	"aibox/trainer/metrics"
)

// farOff is the ratio between clicks and predicted clicks, or its reciprocal, from which on the
// first examples of a night do not look as if they were counted like those of the nights before.
const farOff = 2.0

// startRateWarning says that the share of positives among the first examples of a run, each of
// which the model scored before it was trained on it, is far from what a model predicts that goes
// on from an earlier one; "": it is not, or chance may be the reason. A night for which most of the
// clicks have not arrived looks like that. The model learns the new share within some hundred
// steps, and its AUC shows nothing.
func startRateWarning(first metrics.Report) string {
	predicted := float64(first.MeanPrediction) * first.WeightSum
	ratio := first.Positives / predicted
	if !(ratio > farOff || ratio < 1/farOff) || math.Abs(first.Positives-predicted) < 5*math.Sqrt(predicted) {
		return ""
	}
	return fmt.Sprintf("of the first %d examples a share of %.4g is positive, where the model from which this run started predicted %.4g; unless that is so, as after another sampling of the log, check that the clicks have been joined, and data.label",
		first.Examples, float64(first.BaseRate), float64(first.MeanPrediction))
}

// checkStartRate adds that warning when enough examples of the first epoch are counted: after a
// window of so many, of so many in all.
func (r *run) checkStartRate(window, examples int64) {
	if r.state.Epoch != 1 || r.state.InitialBias != nil || examples < manyExamples || examples-window >= manyExamples {
		return
	}
	if text := startRateWarning(r.state.Online.All.Report()); text != "" {
		r.state.Warnings = append(r.state.Warnings, text)
		r.log.Warn(text)
	}
}
