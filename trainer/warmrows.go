package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/warmstart"
)

// rows makes the run's table of that of the earlier model. If both are on SSD, and
// rows have the same words, it clones that table, which costs next to nothing however large
// it is. Otherwise it copies and converts every row.
func (t *takeover) rows(ctx context.Context) error {
	r := t.run
	oldRows, before, err := jobparts.RowLayout(t.earlier, t.oldSpec)
	if err != nil {
		return fmt.Errorf("job file of the earlier model: %w", err)
	}
	values, err := warmstart.MatchAxes("row", []int{before.ValueDim}, [][]string{t.oldSpec.RowNames()}, []int{r.Layout.ValueDim}, [][]string{r.Spec.RowNames()})
	if err != nil {
		return err
	}
	if before, now := t.oldSpec.EmbeddingDim, r.Spec.EmbeddingDim; before != now {
		r.log.Warn("warm start: embeddings have another dimension; those that both models have are taken over", "earlier", before, "now", now)
	}
	keepState := t.keepsRowState(values)
	if before.Format != r.Layout.Format {
		r.log.Info("warm start: the values of rows are converted", "earlier", before.Format, "now", r.Layout.Format)
	}
	t.warnFields()
	t.rowSteps(keepState)
	earlier, err := modeltable.RowDecay(r.models.previous)
	if err != nil {
		return err
	}
	history := earlier
	switch {
	case values.Fresh > 0 || before.ValueDim != r.Layout.ValueDim:
		history = nil // a row's first value, which may decay in a way of its own, is another one now, and new values have not decayed yet
	case !keepState:
		history = earlier.WithoutState()
	}
	renew, err := r.decayRows(history, r.models.previous.Step)
	if err != nil {
		return err
	}
	if keepState && !renew && values.Fresh == 0 && before == r.Layout && r.job.SparseTable.Kind == sparsetable.KindSSD && t.earlier.SparseTable.Kind == sparsetable.KindSSD {
		err := t.clone(ctx)
		if !errors.Is(err, sparsetable.ErrNotCloneable) {
			return err
		}
		r.log.Info("warm start: the rows are copied", "reason", err)
	}
	if err := r.openTable(ctx, 0); err != nil {
		return err
	}
	return t.copyRows(ctx, warmstart.NewConverter(warmstart.Conversion{
		From: before, To: r.Layout, Take: values, KeepState: keepState, Rounding: sparsetable.NewRounding(r.job.Seed, initRounding),
		Init: r.table.init, Refresh: r.Rows.Init, Parts: r.Rows.Parts(), OldParts: oldRows.Parts(),
		Clocks: decay.NewHandover(earlier, r.state.Engine.Decay, r.models.previous.Step, renew || !keepState && decay.RatesOf(r.Rows).By != nil),
	}))
}

// keepsRowState decides whether rows keep the state of their optimizer, and says so if not.
// A value that is new in an old row cannot begin with a step count of its own, so
// optimizers that count steps start afresh with all values of the row.
func (t *takeover) keepsRowState(values *warmstart.Match) bool {
	r := t.run
	if before, now := rowOptimizers(t.earlier), rowOptimizers(r.job); before != now {
		r.log.Warn("warm start: the earlier model had another row optimizer; the optimizer's state starts fresh", "earlier", before, "now", now)
		return false
	}
	if values.Fresh > 0 && r.Rows.HasSteps() {
		r.log.Warn("warm start: rows have values that they did not have in the earlier model; the state of their optimizer starts fresh", "earlier", t.oldSpec.DescribeRow(), "now", r.Spec.DescribeRow())
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

// clone makes the run's table a clone of the earlier one.
func (t *takeover) clone(ctx context.Context) error {
	r := t.run
	o, err := r.newTable()
	if err != nil {
		return err
	}
	if err := r.clonesArriving(ctx, &o); err != nil {
		return err
	}
	info, err := r.models.previous.CloneTable(ctx, o)
	if err != nil {
		return err
	}
	err = r.openTable(ctx, info.Snapshot.ID)
	if other := (*sparsetable.LayoutError)(nil); errors.As(err, &other) {
		return t.otherRows(other.Have, other.Want)
	}
	if err != nil {
		return err
	}
	r.table.base = info.Snapshot.ID
	r.log.Info("warm start", "model", r.models.previous.Name, "rows", info.Snapshot.Rows, "step", r.models.previous.Step,
		"shared_bytes", info.LinkedBytes, "copied_bytes", info.CopiedBytes, "index_bytes", info.Snapshot.Bytes)
	return nil
}

// otherRows says that the earlier model's table is that of another model.
func (t *takeover) otherRows(have, want sparsetable.Layout) error {
	reason := fmt.Sprintf("its table has %d values per row, but its job has %d", have.ValueDim, want.ValueDim)
	if have.ValueDim == want.ValueDim {
		reason = fmt.Sprintf("its table has rows of %v, but its job has rows of %v", have, want)
	}
	return &modeldir.CorruptionError{File: t.run.models.previous.Name, Offset: -1, Reason: reason}
}

// copyRows copies every row of the earlier table to the run's.
func (t *takeover) copyRows(ctx context.Context, c *warmstart.Converter) error {
	r := t.run
	if err := r.readsArriving(); err != nil {
		return err
	}
	o := jobparts.TableOptions(t.earlier)
	o.Logger = r.log
	table, err := r.models.previous.OpenTable(ctx, o)
	if err != nil {
		return err
	}
	defer table.Close()
	if have := table.Layout(); have != c.From {
		return t.otherRows(have, c.From)
	}
	n, seconds, err := warmstart.CopyRows(ctx, table, r.table.Table, c, r.log)
	if err != nil {
		return err
	}
	r.log.Info("warm start", "model", r.models.previous.Name, "rows", n, "step", r.models.previous.Step, "seconds", seconds)
	return nil
}

// rowSteps copies how many steps the rows of each embedding space have taken with their
// optimizer state.
func (t *takeover) rowSteps(sameState bool) {
	saved := func(name string) []float32 {
		for _, s := range t.run.models.previous.Dense {
			if s.Name == optimizerPrefix+name {
				return s.Data
			}
		}
		return nil
	}
	before := jobparts.Spaces(t.earlier, t.oldSpec.Fields)
	has := func(space string) bool { return sameState && slices.Contains(before, space) }
	t.run.state.Engine.RowSteps.TakeOver(saved, has, t.run.models.previous.Step)
}

// warnFields logs embedding spaces that only one of the two models has.
func (t *takeover) warnFields() {
	spaces := func(job *configs.Job) map[string]bool {
		out := make(map[string]bool)
		for _, c := range job.SparseColumns() {
			out[cmp.Or(c.Space, c.Name)] = true
		}
		return out
	}
	old, now := spaces(t.earlier), spaces(t.run.job)
	for _, s := range slices.Sorted(maps.Keys(now)) {
		if !old[s] {
			t.run.log.Info("warm start: new embedding space", "space", s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(old)) {
		if !now[s] {
			t.run.log.Info("warm start: embedding space is no longer used; its rows stay until they expire", "space", s)
		}
	}
}
