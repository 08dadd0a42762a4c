package takeover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/densefile"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeltable"
	"aibox/trainer/warmstart"
)

// Rows says what happens to the rows of the earlier model's table.
type Rows struct {
	Same       bool                 // they stay unchanged, so the table may be cloned
	Conversion warmstart.Conversion // without Init
}

// Rows decides what happens to the rows, and starts their decay. The caller has both tables and
// does the rest.
func (t *Takeover) Rows() (*Rows, error) {
	oldRows, before, err := jobparts.RowLayout(t.earlier, t.oldSpec)
	if err != nil {
		return nil, fmt.Errorf("job file of the earlier model: %w", err)
	}
	values, err := warmstart.MatchAxes("row", []int{before.ValueDim}, [][]string{t.oldSpec.RowNames()}, []int{t.Parts.Layout.ValueDim}, [][]string{t.Parts.Spec.RowNames()})
	if err != nil {
		return nil, err
	}
	if before, now := t.oldSpec.EmbeddingDim, t.Parts.Spec.EmbeddingDim; before != now {
		t.Log.Warn("warm start: embeddings have another dimension; those that both models have are taken over", "earlier", before, "now", now)
	}
	keepState := t.keepsRowState(values)
	if before.Format != t.Parts.Layout.Format {
		t.Log.Info("warm start: the values of rows are converted", "earlier", before.Format, "now", t.Parts.Layout.Format)
	}
	t.logFeatures()
	t.rowSteps(keepState)
	earlier, err := modeltable.RowDecay(t.Saved)
	if err != nil {
		return nil, err
	}
	history := earlier
	switch {
	case values.Fresh > 0 || before.ValueDim != t.Parts.Layout.ValueDim:
		history = nil // a row's first value, which may decay differently, has changed, and new values have not decayed yet
	case !keepState:
		history = earlier.WithoutState()
	}
	timeline, renew, err := jobparts.NewDecay(t.Job, t.Parts.Rows, history, t.Saved.Step)
	if err != nil {
		return nil, err
	}
	t.State.Decay = timeline
	days := t.dayShift()
	return &Rows{
		Same: keepState && !renew && values.Fresh == 0 && before == t.Parts.Layout && days == 0,
		Conversion: warmstart.Conversion{
			From: before, To: t.Parts.Layout, Take: values, KeepState: keepState, Rounding: sparsetable.NewRounding(t.Job.Seed, jobparts.InitRounding),
			Refresh: t.Parts.Rows.Init, Parts: t.Parts.Rows.Parts(), OldParts: oldRows.Parts(),
			Clocks: decay.NewHandover(earlier, t.State.Decay, t.Saved.Step, renew || !keepState && decay.RatesOf(t.Parts.Rows).By != nil),
			Days:   days,
		},
	}, nil
}

// dayShift returns how many days are added to the day when rows were last seen. If this job counts
// days by date, and the earlier model counted runs, its last run counts as the day before.
func (t *Takeover) dayShift() int64 {
	if !t.Job.Dated || t.Saved.DayFromDate {
		return 0
	}
	t.Log.Info("warm start: the earlier model has no date, so the rows that it has trained count as those of the day before, and those of each run before it as a day older")
	return int64(t.Day) - int64(t.Saved.Day) - 1
}

// keepsRowState decides whether rows keep the state of their optimizer, and logs if they do not. A
// value that is new in an old row cannot have a step count of its own, so optimizers that count
// steps start fresh with all values of the row.
func (t *Takeover) keepsRowState(values *warmstart.Match) bool {
	if before, now := rowOptimizers(t.earlier), rowOptimizers(t.Job); before != now {
		t.Log.Warn("warm start: the earlier model had another row optimizer; the optimizer's state starts fresh", "earlier", before, "now", now)
		return false
	}
	if values.Fresh > 0 && t.Parts.Rows.HasSteps() {
		t.Log.Warn("warm start: rows have values that they did not have in the earlier model; the state of their optimizer starts fresh", "earlier", t.oldSpec.DescribeRow(), "now", t.Parts.Spec.DescribeRow())
		return false
	}
	return true
}

// rowOptimizers names the optimizers of a job's rows.
func rowOptimizers(job *configs.Job) string {
	if job.Optimizer.Linear == nil {
		return job.Optimizer.Rows.Kind
	}
	return job.Optimizer.Rows.Kind + ", " + job.Optimizer.Linear.Kind + " for linear weights"
}

// rowSteps copies how many steps the rows of each embedding space have taken with their optimizer
// state.
func (t *Takeover) rowSteps(sameState bool) {
	saved := func(name string) []float32 {
		for _, s := range t.Saved.Dense {
			if s.Name == densefile.OptimizerPrefix+name {
				return s.Data
			}
		}
		return nil
	}
	before := jobparts.Spaces(t.earlier, t.oldSpec.Fields)
	has := func(space string) bool { return sameState && slices.Contains(before, space) }
	t.State.RowSteps.TakeOver(saved, has, t.Saved.Step)
}

// logFeatures logs embedding spaces and dense features that only one of the two models has.
func (t *Takeover) logFeatures() {
	spaces := func(job *configs.Job) map[string]bool {
		out := make(map[string]bool)
		for _, c := range job.SparseColumns() {
			out[cmp.Or(c.Space, c.Name)] = true
		}
		return out
	}
	old, now := spaces(t.earlier), spaces(t.Job)
	for _, s := range slices.Sorted(maps.Keys(now)) {
		if !old[s] {
			t.Log.Info("warm start: new embedding space", "space", s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(old)) {
		if !now[s] {
			t.Log.Info("warm start: embedding space is no longer used; its rows stay until they expire", "space", s)
		}
	}
	if added := without(t.Parts.Spec.Dense, t.oldSpec.Dense); len(added) > 0 {
		t.Log.Info("warm start: new dense features", "features", added)
	}
	if gone := without(t.oldSpec.Dense, t.Parts.Spec.Dense); len(gone) > 0 {
		t.Log.Info("warm start: dense features are no longer used; their weights are left behind", "features", gone)
	}
}

// without returns the names that are not in others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
