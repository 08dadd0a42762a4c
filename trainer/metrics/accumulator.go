package metrics

import (
	"errors"
	"fmt"
	"math"

	"aibox/internal/errkind"
	"aibox/internal/score"
)

// ErrNotFinite is wrapped by the error of Add for a logit that is NaN or infinite: the model has
// diverged.
var ErrNotFinite = errkind.New(errkind.Diverged, "logit is not a finite number")

// Options of an Accumulator. The zero value computes everything but the exact and the group AUC.
type Options struct {
	// Exact asks for the exact AUC.
	Exact bool
	// MaxExactExamples bounds the number of examples kept for the exact AUC and, separately, for
	// the group AUC; 0 means no bound. See the package comment.
	MaxExactExamples int64
	// Groups asks for the AUC within groups.
	Groups bool
	// Bins is the number of bins of the streaming AUC; 0 stands for score.DefaultBins, 65536. More
	// bins make the error smaller: see Report.StreamingAUCError.
	Bins int
	// LogitShift is added to every logit before it becomes a probability. A model that was trained
	// on a share r of the negatives predicts odds that are too high by the factor 1/r; a shift of
	// log(r) corrects that. Ranking does not depend on it.
	LogitShift float32
}

// Accumulator collects predictions. New makes one.
type Accumulator struct {
	opt    Options
	loss   score.Loss
	hist   *score.Histogram
	exact  *score.Exact  // nil if not asked for, or given up
	groups *score.Groups // nil if not asked for
}

// New returns an empty Accumulator.
func New(opt Options) *Accumulator {
	a := &Accumulator{opt: opt, hist: score.NewHistogram(opt.Bins)}
	a.Reset()
	return a
}

// Reset forgets all examples.
func (a *Accumulator) Reset() {
	a.loss = score.Loss{}
	a.hist.Reset()
	if a.opt.Exact {
		if a.exact == nil {
			a.exact = new(score.Exact)
		}
		a.exact.Reset()
	}
	if a.opt.Groups {
		if a.groups == nil {
			a.groups = score.NewGroups(a.opt.MaxExactExamples)
		}
		a.groups.Reset()
	}
}

// Clone returns a copy of an accumulator without exact and group AUC.
func (a *Accumulator) Clone() *Accumulator {
	if a.opt.Exact || a.opt.Groups {
		panic("metrics: an accumulator with exact or group AUC is not copied")
	}
	return &Accumulator{opt: a.opt, loss: a.loss, hist: a.hist.Clone()}
}

// Add adds examples: logits (N), labels (N) of 0 or 1, weights (N) or nil if all are 1, groups (N),
// needed only with Options.Groups. It does not keep the slices. On an error, which names the
// offending example, nothing has been added.
func (a *Accumulator) Add(logits, labels, weights []float32, groups []uint64) error {
	return AddTo([]*Accumulator{a}, logits, labels, weights, groups)
}

// AddTo adds the same examples to several accumulators with the same LogitShift, as Add does, and
// computes what they share only once.
func AddTo(all []*Accumulator, logits, labels, weights []float32, groups []uint64) error {
	for _, a := range all {
		if err := a.check(logits, labels, weights, groups); err != nil {
			return err
		}
	}
	for i, logit := range logits {
		positive := labels[i] == 1
		weight := float32(1)
		if weights != nil {
			weight = weights[i]
		}
		// The shifted logit is rounded to float32, as in serving.
		term := score.NewTerm(float64(logit+all[0].opt.LogitShift), positive)
		for _, a := range all {
			a.loss.Add(term, float64(weight))
			a.hist.Add(logit, positive, weight)
			if a.exact != nil {
				a.exact.Add(logit, positive, weight)
			}
			if a.groups != nil {
				a.groups.Add(groups[i], logit, positive, weight)
			}
		}
	}
	for _, a := range all {
		if a.opt.MaxExactExamples > 0 && a.loss.Examples() > a.opt.MaxExactExamples {
			a.exact = nil
		}
	}
	return nil
}

func (a *Accumulator) check(logits, labels, weights []float32, groups []uint64) error {
	n := len(logits)
	if len(labels) != n || (weights != nil && len(weights) != n) || (groups != nil && len(groups) != n) {
		return fmt.Errorf("metrics: %d logits with %d labels, %d weights, %d groups", n, len(labels), len(weights), len(groups))
	}
	if a.groups != nil && groups == nil && n > 0 {
		return errors.New("metrics: the group AUC is wanted, but the examples have no groups")
	}
	for i, logit := range logits {
		if !finite(logit) {
			return fmt.Errorf("metrics: example %d: %w: %v; the model has diverged, a smaller learning rate may help",
				a.loss.Examples()+int64(i), ErrNotFinite, logit)
		}
	}
	for i, label := range labels {
		if label != 0 && label != 1 {
			return fmt.Errorf("metrics: example %d: label %v is neither 0 nor 1", a.loss.Examples()+int64(i), label)
		}
	}
	for i, weight := range weights {
		if !finite(weight) || weight < 0 {
			return fmt.Errorf("metrics: example %d: weight %v is negative or not finite", a.loss.Examples()+int64(i), weight)
		}
	}
	return nil
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// MergeScores adds the scores of other, which must have the same number of bins, to those from
// which a computes AUC. Nothing else in a changes.
func (a *Accumulator) MergeScores(other *Accumulator) { a.hist.Merge(other.hist) }

// AUC is the streaming AUC.
func (a *Accumulator) AUC() Value {
	auc, _ := a.hist.AUC()
	return Value(auc)
}

// Report measures the examples so far. It sorts if the exact or the group AUC is asked for. More
// examples may be added afterwards.
func (a *Accumulator) Report() Report {
	r := Report{
		Examples:          a.loss.Examples(),
		WeightSum:         a.loss.Weight(),
		Positives:         a.loss.Positives(),
		BaseRate:          Value(a.loss.BaseRate()),
		MeanPrediction:    Value(a.loss.MeanPrediction()),
		COPC:              Value(a.loss.COPC()),
		LogLoss:           Value(a.loss.LogLoss()),
		NormalizedEntropy: Value(a.loss.NormalizedEntropy()),
		GroupAUC:          score.Undefined(),
	}
	auc, bound := a.hist.AUC()
	r.StreamingAUC, r.StreamingAUCError = Value(auc), Value(bound)
	r.AUC, r.AUCError = r.StreamingAUC, r.StreamingAUCError
	if a.exact != nil {
		r.AUC, r.AUCExact = Value(a.exact.AUC()), true
		if r.AUC.Defined() {
			r.AUCError = 0
		}
	}
	if a.groups != nil {
		g := a.groups.AUC()
		r.GroupAUC, r.Groups, r.GroupsUsed, r.GroupShare = Value(g.AUC), g.Seen, g.Used, g.Share
	}
	return r
}
