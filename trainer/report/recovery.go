package report

import (
	"fmt"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/modeldir"
)

// Recovery says how a run went on after its table, or that of the model to start from, had lost a
// directory.
type Recovery struct {
	Time time.Time          `json:"time"`
	Mode string             `json:"mode"`                       // full or partial: see recovery.mode
	Lost []modeldir.LostDir `json:"lost_directories,omitempty"` // empty if files are lost or damaged
	From string             `json:"from"`                       // what replaces the lost rows or run
	// Step and Examples are where training resumes. Again is the number of examples that are
	// trained again.
	Step     int64 `json:"step"`
	Examples int64 `json:"trained_examples"`
	Again    int64 `json:"examples_trained_again"`
	// The following are for partial recovery. LostSamples is what the failure adds to the portion
	// of lost samples, for the share of the table's slots that was lost. Rows of RowsLost that were
	// not restored begin as new ones.
	LostSamples  float64 `json:"lost_samples,omitempty"`
	LostShare    float64 `json:"lost_share,omitempty"`
	RowsLost     int64   `json:"rows_lost,omitempty"`
	RowsRestored int64   `json:"rows_restored,omitempty"`
	// RowsByPriority are those of RowsRestored that snapshots.priority had saved since. LostSamples
	// ignores them, so it is an upper bound.
	RowsByPriority int64 `json:"rows_saved_by_priority,omitempty"`
}

// Text describes the recovery for people.
func (r *Recovery) Text() string {
	what := "files of the table"
	if len(r.Lost) > 0 {
		var dirs []string
		for _, d := range r.Lost {
			dirs = append(dirs, d.Dir)
		}
		what = strings.Join(dirs, ", ")
	}
	switch {
	case r.Mode == configs.RecoveryPartial && r.Exact():
		return fmt.Sprintf("%s at step %d; %s that were lost went back to %s, which is of the same step, so nothing is lost", what, r.Step, humanize.Count(r.RowsLost, "row"), r.From)
	case r.Mode == configs.RecoveryPartial:
		back := fmt.Sprintf("%s that were lost went back to %s", humanize.Count(r.RowsLost, "row"), r.From)
		if r.RowsRestored < r.RowsLost {
			back = fmt.Sprintf("of %s that were lost, %d went back to %s, the others start as new rows", humanize.Count(r.RowsLost, "row"), r.RowsRestored, r.From)
		}
		return fmt.Sprintf("%s at step %d; %s; %.3g of the samples are lost: this is not the model of an undisturbed run", what, r.Step, back, r.LostSamples)
	}
	return fmt.Sprintf("%s; went on from %s after step %d; %s trained again", what, r.From, r.Step, humanize.Count(r.Again, "example"))
}

// Exact reports whether the lost rows went back to a snapshot of the very step from which the run
// resumes, so that its model is the same as without the loss.
func (r *Recovery) Exact() bool { return r.LostSamples == 0 && r.RowsRestored == r.RowsLost }

// PartialRecovery returns what a model records about the failures of its run.
func PartialRecovery(all []Recovery) (p modeldir.PartialRecovery) {
	for i := range all {
		if r := &all[i]; r.Mode == configs.RecoveryPartial && !r.Exact() {
			p.Recoveries++
			p.LostSamples += r.LostSamples
			p.RowsAnew += r.RowsLost - r.RowsRestored
		}
	}
	return p
}

// LostSamples returns the portion of lost samples of all failures of a run.
func LostSamples(all []Recovery) (portion float64) {
	for i := range all {
		portion += all[i].LostSamples
	}
	return portion
}
