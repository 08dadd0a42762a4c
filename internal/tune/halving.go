package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"aibox/internal/score"
)

// eta is the reduction factor: one in eta trials of a round is kept, and the examples grow by this
// factor from one round to the next.
const eta = 3

// MinExamples is the minimum number of examples of a round: with fewer, chance decides.
const MinExamples = 20_000

// Round is one round of successive halving.
type Round struct {
	Trials   int   `json:"trials"`   // as many take part, beside trial 0
	Examples int64 `json:"examples"` // the first ones of the data; 0: all
}

// finalists is the maximum number of trials in the last round, besides trial 0. With only one, a
// setting that learns slowly but well from all data would also have to be the best on a small part.
const finalists = 3

// Rounds plans the rounds for a number of trials beside trial 0, over data with about so
// many examples. The last round uses all of them.
func Rounds(trials int, examples int64) []Round {
	counts := []int{trials}
	for n := trials; n > finalists; {
		n = (n + eta - 1) / eta
		counts = append(counts, n)
	}
	var out []Round // the last one first
	part := examples
	for _, n := range slices.Backward(counts) {
		size := max(part, MinExamples)
		part /= eta
		switch {
		case len(out) == 0:
			out = append(out, Round{Trials: n}) // all examples
		case size >= examples || size == out[len(out)-1].Examples:
			out[len(out)-1].Trials = n // on as many examples as in the round after it: one will do
		default:
			out = append(out, Round{Trials: n, Examples: size})
		}
	}
	slices.Reverse(out)
	return out
}

// Readings returns how many times the rounds read the whole data, per epoch.
func Readings(rounds []Round, examples int64) (n float64) {
	for _, r := range rounds {
		part := float64(r.Examples) / float64(examples)
		if r.Examples == 0 {
			part = 1
		}
		n += float64(r.Trials+1) * part
	}
	return n
}

// Metric is what trials are compared by.
type Metric string

// The metrics.
const (
	LogLoss Metric = "log_loss"
	AUC     Metric = "auc"
)

// Result is what a trial achieved in a round, on the examples that were held out.
type Result struct {
	Trial    int         `json:"trial"`
	Settings []Setting   `json:"settings,omitempty"`
	Round    int         `json:"round"`    // from 1
	HeldOut  int64       `json:"held_out"` // examples
	LogLoss  float64     `json:"log_loss"`
	AUC      score.Value `json:"auc"`
	Epoch    int         `json:"epoch"` // the best one
	Seconds  float64     `json:"seconds"`
	// Failure says why the settings made no model, as where it diverged; "": they made one.
	Failure string `json:"failure,omitempty"`
}

// loss is the quantity to minimize.
func (r *Result) loss(by Metric) float64 {
	switch {
	case r.Failure != "":
		return math.Inf(1)
	case by == AUC:
		return -float64(r.AUC)
	}
	return r.LogLoss
}

// Search is a search for settings.
type Search struct {
	Trials []Trial // from Draw
	Rounds []Round
	Metric Metric
	// Run trains a trial and evaluates it. An error ends the search; settings that yield no model
	// are not an error.
	Run func(ctx context.Context, t Trial, round int, examples int64) (*Result, error)
	// Journal has the results of an earlier Search that was interrupted, and gets the
	// new ones; nil: none.
	Journal *Journal
}

// Best is the outcome of a search.
type Best struct {
	Results []*Result // of all rounds, the last round first, and the best of a round first
	Trial   Trial     // the best one of the last round
	Result  *Result
	AsItIs  *Result // trial 0 in the last round
}

// Do runs the trials, one after the other.
func (s *Search) Do(ctx context.Context) (*Best, error) {
	b := new(Best)
	alive := s.Trials
	for i, round := range s.Rounds {
		var results []*Result
		for _, t := range alive {
			r, err := s.one(ctx, t, i+1, round.Examples)
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
		slices.SortStableFunc(results, func(a, b *Result) int { return cmp.Compare(a.loss(s.Metric), b.loss(s.Metric)) })
		b.Results = append(slices.Clone(results), b.Results...)
		if i+1 < len(s.Rounds) {
			alive = s.best(results, s.Rounds[i+1].Trials)
			continue
		}
		b.Result = results[0]
		b.Trial = s.trial(b.Result.Trial)
		for _, r := range results {
			if r.Trial == 0 {
				b.AsItIs = r
			}
		}
	}
	if b.Result.Failure != "" {
		return b, fmt.Errorf("no settings produced a model; the original job: %s", b.AsItIs.Failure)
	}
	return b, nil
}

func (s *Search) one(ctx context.Context, t Trial, round int, examples int64) (*Result, error) {
	if r := s.Journal.find(t, round); r != nil {
		return r, nil
	}
	r, err := s.Run(ctx, t, round, examples)
	if err != nil {
		return nil, err
	}
	r.Trial, r.Round, r.Settings = t.ID, round, t.Settings
	return r, s.Journal.add(r)
}

// best returns trial 0 and the n best of the others, ordered by number. Trials that yielded no
// model are left out.
func (s *Search) best(results []*Result, n int) []Trial {
	alive := []Trial{s.trial(0)}
	for _, r := range results {
		if r.Trial != 0 && r.Failure == "" && len(alive) <= n {
			alive = append(alive, s.trial(r.Trial))
		}
	}
	slices.SortFunc(alive, func(a, b Trial) int { return cmp.Compare(a.ID, b.ID) })
	return alive
}

func (s *Search) trial(id int) Trial {
	return s.Trials[slices.IndexFunc(s.Trials, func(t Trial) bool { return t.ID == id })]
}
