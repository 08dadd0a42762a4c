package score

import (
	"math"

	"aibox/internal/fixmath"
)

// Loss sums log loss and predictions over examples, in the order given. The
// zero value is ready.
type Loss struct {
	examples                           int64
	weight, positives, loss, predicted Sum
}

// Term is what an example adds to a Loss, apart from its weight. It takes an exponential
// and a logarithm, so one that several sums need is computed once.
type Term struct {
	loss, predicted float64
	positive        bool
}

// NewTerm returns the term of an example with the logit of its predicted probability. It
// computes -log of the probability of the label from the logit, so that a
// confident prediction loses no digits.
func NewTerm(logit float64, positive bool) Term {
	e := fixmath.Exp(-math.Abs(logit))
	loss := fixmath.Log1p(e)
	if (logit > 0) != positive {
		loss += math.Abs(logit)
	}
	p := 1 / (1 + e)
	if logit < 0 {
		p = e / (1 + e)
	}
	return Term{loss, p, positive}
}

// Add adds one example.
func (l *Loss) Add(t Term, weight float64) {
	l.examples++
	l.weight.Add(weight)
	l.loss.Add(float64(t.loss * weight))
	l.predicted.Add(float64(t.predicted * weight))
	if t.positive {
		l.positives.Add(weight)
	}
}

// Examples is the number of examples added.
func (l *Loss) Examples() int64 { return l.examples }

// Weight is the sum of weights.
func (l *Loss) Weight() float64 { return l.weight.Value() }

// Positives is the weight of the positives.
func (l *Loss) Positives() float64 { return l.positives.Value() }

// BaseRate is the share of positives by weight.
func (l *Loss) BaseRate() float64 { return quotient(l.Positives(), l.Weight()) }

// MeanPrediction is the mean predicted probability.
func (l *Loss) MeanPrediction() float64 { return quotient(l.predicted.Value(), l.Weight()) }

// LogLoss is the mean log loss in nats.
func (l *Loss) LogLoss() float64 { return quotient(l.loss.Value(), l.Weight()) }

// NormalizedEntropy is the log loss divided by that of predicting the base
// rate for every example (He et al., ADKDD 2014, §2.2): below 1 the predictions
// say more than the base rate does. Undefined with one class only.
func (l *Loss) NormalizedEntropy() float64 {
	return quotient(l.LogLoss(), fixmath.Entropy(l.BaseRate()))
}

// COPC is clicks over predicted clicks: above 1 the predictions are too low.
func (l *Loss) COPC() float64 { return quotient(l.Positives(), l.predicted.Value()) }

// quotient is NaN where the denominator is 0 or undefined, or so small that no float64 holds the
// result, as clicks over a click probability of 1e-320.
func quotient(a, b float64) float64 {
	q := a / b
	if !(b > 0) || math.IsInf(q, 0) {
		return math.NaN()
	}
	return q
}
