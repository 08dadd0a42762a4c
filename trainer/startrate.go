package trainer

import (
	"fmt"
	"math"

	"aibox/trainer/metrics"
)

// farOff is a ratio between clicks and predicted clicks. From this ratio on, or from its reciprocal
// down, the first examples of a night do not look as if they were counted like those of earlier
// nights.
const farOff = 2.0

// startRateWarning returns a warning if the share of positives among the first examples of a run is
// far from the predictions of the model that the run started from, and chance is not the reason;
// otherwise it returns "". Each example was scored before it was trained on. A night for which most
// of the clicks have not arrived looks like that. The model learns the new share within some
// hundred steps, and its AUC does not show the fault.
func startRateWarning(first metrics.Report) string {
	predicted := float64(first.MeanPrediction) * first.WeightSum
	ratio := first.Positives / predicted
	if !(ratio > farOff || ratio < 1/farOff) || math.Abs(first.Positives-predicted) < 5*math.Sqrt(predicted) {
		return ""
	}
	return fmt.Sprintf("of the first %d examples a share of %.4g is positive, but the model that this run started from predicted %.4g; unless that is expected, for example because the log is sampled differently, check data.label and that the clicks have been joined",
		first.Examples, float64(first.BaseRate), float64(first.MeanPrediction))
}

// checkStartRate adds that warning once manyExamples examples of the first epoch are counted. It is
// called after a window of the given length, with the number of examples so far.
func (r *run) checkStartRate(window, examples int64) {
	if r.state.Epoch != 1 || r.state.InitialBias != nil || examples < manyExamples || examples-window >= manyExamples {
		return
	}
	if text := startRateWarning(r.state.Online.All.Report()); text != "" {
		r.state.Warnings = append(r.state.Warnings, text)
		r.log.Warn(text)
	}
}
