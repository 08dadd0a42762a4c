package trainer

import (
	"math"

	"aibox/internal/errkind"
	"aibox/trainer/metrics"
	"aibox/trainer/runstate"
)

// checkLearned refuses a model that predicts worse than the share of the positives alone, such as
// one whose training has diverged so that it predicts 0 and 1. Published, it would do harm every
// hour until the next night. checkLearned also refuses a model whose many training examples all
// have the same label. How well the model predicts is decided by the evaluation after the kept
// epoch. If all data are trained on, or if the evaluation data all have the same label, the last
// line of the training metrics decides, or the whole kept epoch if it is not the last one. This
// holds only if training was long enough to learn anything, or if their log loss is too high.
func (r *run) checkLearned(k *runstate.Kept) error {
	if r.job.Training.AcceptDiverged {
		return nil
	}
	if text := r.oneLabel(); text != "" && r.state.Epochs[0].Online.Examples >= manyExamples {
		return &worseError{errkind.Errorf(errkind.Diverged, "%s; training.accept_diverged: true commits such a model", text)}
	}
	where, report := r.state.OfEpoch(k.Epoch).Decisive()
	if report == nil || !report.NormalizedEntropy.Defined() {
		where, report = "the last training examples, each before it was trained on,", r.state.Recent
		if k.Epoch != r.state.Last.Epoch {
			where, report = "the training examples, each before it was trained on,", &r.state.OfEpoch(k.Epoch).Online
		}
		if report != nil && k.Step-r.state.Engine.FirstStep < fewSteps && !(report.LogLoss > untrainedLoss) {
			return nil
		}
	}
	if report == nil || !worseThanConstant(report) {
		return nil
	}
	return &worseError{errkind.Errorf(errkind.Diverged, "the model is worse than no model: on %s its normalized entropy is %.3f (log loss %.4f, mean prediction %.4g, share of positives %.4g), so predicting that share for every example would be better; lower the learning rates, look for dense features with a huge range, or train fewer epochs; training.accept_diverged: true commits such a model",
		where, float64(report.NormalizedEntropy), float64(report.LogLoss), float64(report.MeanPrediction), float64(report.BaseRate))}
}

// manyExamples is a number of examples that do not all have the same label by chance: even with a
// share of positives of one in ten thousand, ten of them are positive. If they do have the same
// label, clicks were not joined to impressions, or the log has only clicks.
const manyExamples = 100_000

// oneLabel returns an error text if all training examples have the same label, and "" otherwise. It
// looks at the first epoch, since a later one may have been cut short.
func (r *run) oneLabel() string {
	if len(r.state.Epochs) == 0 {
		return ""
	}
	switch e := &r.state.Epochs[0].Online; {
	case e.Examples > 0 && e.Positives == 0:
		return "no training example is positive, so the model has learned nothing but that; check data.label"
	case e.Examples > 0 && e.Positives == e.WeightSum:
		return "all training examples are positive, so the model has learned nothing but that; check data.label"
	}
	return ""
}

// worseError is the error of a run whose trained model is worse than none. A run that accepts such
// a model resumes from there.
type worseError struct{ error }

func (e *worseError) Unwrap() error { return e.error }

// untrainedLoss is a log loss that no untrained model has: one that predicts 0.5 has 0.69.
const untrainedLoss = 2

// chance is the number of standard errors by which a log loss must exceed the entropy of the
// labels, so that a small set of examples does not refuse a model by chance.
const chance = 3

// worseThanConstant reports whether the normalized entropy exceeds 1 by more than chance.
func worseThanConstant(report *metrics.Report) bool {
	if !(report.NormalizedEntropy > 1) || report.Examples == 0 {
		return false
	}
	p := float64(report.BaseRate)
	entropy := float64(report.LogLoss) / float64(report.NormalizedEntropy)
	// The deviation of the log loss of the constant prediction p, and of one that is off by about
	// as much.
	deviation := math.Sqrt(p*(1-p)) * max(1, math.Abs(math.Log(p/(1-p))))
	return float64(report.LogLoss)-entropy > chance*deviation/math.Sqrt(float64(report.Examples))
}
