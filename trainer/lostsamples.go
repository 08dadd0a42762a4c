package trainer

import (
	"encoding/json"
	"fmt"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// The portion of lost samples (PLS; CPR, Maeng et al., MLSys 2021, §4.1) is the share of the
// training data whose effect on the model is lost. A failure after S_i of S_total examples,
// whose lost rows go back to what they were after S_last examples, adds
//
//	(S_i - S_last) / S_total · (lost slots / all slots)
//
// The paper has 1/N in the place of the share of slots, for N nodes with as many rows each.

// LostSamplesError ends a job that has lost more of its samples than it allows.
type LostSamplesError struct {
	Lost    *modeldir.LostError
	Before  float64 // PLS of the run before this failure
	Portion float64 // with it
	Most    float64 // recovery.max_lost_samples
	From    string  // what the lost rows would have gone back to
}

func (e *LostSamplesError) Error() string {
	return fmt.Sprintf("%v; if its rows went back to %s, the run would have lost %.3g of its samples (%.3g before), and recovery.max_lost_samples allows %.3g. Nothing was changed: with --set recovery.mode=full the job goes back to the last snapshot that is whole and makes the model of an undisturbed run; with a larger recovery.max_lost_samples it goes on without these samples",
		e.Lost, e.From, e.Portion, e.Before, e.Most)
}

// Unwrap returns what was lost.
func (e *LostSamplesError) Unwrap() error { return e.Lost }

// ErrorKind says that data are lost.
func (*LostSamplesError) ErrorKind() errkind.Kind { return errkind.LostData }

// partialRecovery is what a model says of the failures of its run, and of that of the model
// that it was made from.
func (r *run) partialRecovery() (p modeldir.PartialRecovery) {
	for i := range r.recoveries {
		if rec := &r.recoveries[i]; rec.Mode == configs.RecoveryPartial && !rec.Exact() {
			p.Recoveries++
			p.LostSamples += rec.LostSamples
			p.RowsAnew += rec.RowsLost - rec.RowsRestored
		}
	}
	p.Inherited = r.start != nil && r.start.Inexact
	return p
}

// progress is how far a snapshot is.
type progress struct {
	Epoch    int            `json:"epoch"`
	Examples int64          `json:"examples"`
	Best     *kept          `json:"best"`
	Epochs   []report.Epoch `json:"epochs"`
}

func (x *resumption) progress() (p progress) {
	_ = json.Unmarshal(x.State, &p) // it was decoded before, or written by this process
	return p
}

// totalExamples is S_total, as far as it is known when the run is at x: the examples of all
// epochs, of which the first one, or what was read of it, tells how many one has. Before that
// is known, nothing is taken to follow, so that the portion of lost samples is not
// underestimated.
func (x *resumption) totalExamples(job *configs.Job) int64 {
	p := x.progress()
	each := p.Examples
	switch c := x.Reader; {
	case len(p.Epochs) > 0:
		each = p.Epochs[0].Examples
	case c != nil && c.Counts.BytesRead > 0 && c.Counts.Examples > 0:
		each = int64(float64(c.Counts.Examples) * float64(c.Counts.BytesTotal) / float64(c.Counts.BytesRead))
	}
	if limit := job.Data.Limit; limit > 0 {
		each = min(each, limit)
	}
	total := each * int64(job.Training.Epochs)
	if most := job.Training.MaxExamples; most > 0 {
		total = min(total, most)
	}
	return max(total, p.Examples, 1)
}
