package refill

import (
	"fmt"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
)

// The portion of lost samples (PLS; CPR, Maeng et al., MLSys 2021, §4.1) is the share of the
// training data whose effect on the model is lost. A failure after S_i of S_total examples, whose
// lost rows go back to their state after S_last examples, adds
//
//	(S_i - S_last) / S_total · (lost slots / all slots)
//
// The paper has 1/N instead of the share of slots, for N nodes with equally many rows.

// LostSamplesError ends a job that has lost more of its samples than it allows.
type LostSamplesError struct {
	Lost    *modeldir.LostError
	Before  float64 // PLS of the run before this failure
	Portion float64 // PLS with this failure
	Most    float64 // recovery.max_lost_samples
	From    string  // what the lost rows would have gone back to
}

func (e *LostSamplesError) Error() string {
	return fmt.Sprintf("%v; if its rows went back to %s, the run would have lost %.3g of its samples (%.3g before), and recovery.max_lost_samples allows %.3g. Nothing was changed: with --set recovery.mode=full the job goes back to the last intact snapshot and makes the model of an undisturbed run; with a larger recovery.max_lost_samples it goes on without these samples",
		e.Lost, e.From, e.Portion, e.Before, e.Most)
}

// Unwrap returns what was lost.
func (e *LostSamplesError) Unwrap() error { return e.Lost }

// ErrorKind says that data are lost.
func (*LostSamplesError) ErrorKind() errkind.Kind { return errkind.LostData }
