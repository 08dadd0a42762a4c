package trainer

import (
	"context"
	"errors"
	"fmt"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/takeover"
	"aibox/trainer/warmstart"
)

// warmStart fills model, optimizers and table from the earlier model. The parts that both models
// have are copied by name: a field, dense feature or tower that was added starts with fresh values,
// and one that was removed is dropped. Optimizer state is copied if both use the same kind of
// optimizer; if it cannot be, the log says so.
func (r *run) warmStart(ctx context.Context) error {
	t := &takeover.Takeover{Job: r.job, Parts: &r.Parts, Model: r.model, State: &r.state.Engine, Log: r.log, Day: r.table.day, Saved: r.models.Previous}
	if err := t.Begin(); err != nil {
		return err
	}
	err := t.Dense()
	if err == nil {
		err = r.takeRows(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("training.warm_start %s: %w", r.models.Previous.Name, err)
	}
	t.ShiftBias()
	r.state.Engine.Step, r.state.Engine.FirstStep = r.models.Previous.Step, r.models.Previous.Step
	return nil
}

// takeRows makes the run's table from the earlier model's. If both are on SSD and their rows have
// the same layout, it clones that table, which costs next to nothing however large it is. Otherwise
// it copies and converts every row.
func (r *run) takeRows(ctx context.Context, t *takeover.Takeover) error {
	rows, err := t.Rows()
	if err != nil {
		return err
	}
	r.table.converted = !rows.Same
	if rows.Same && r.job.SparseTable.Kind == sparsetable.KindSSD && t.Earlier().SparseTable.Kind == sparsetable.KindSSD {
		err := r.cloneRows(ctx)
		if !errors.Is(err, sparsetable.ErrNotCloneable) {
			return err
		}
		r.log.Info("warm start: the rows are copied", "reason", err)
	}
	if err := r.openTable(ctx, 0); err != nil {
		return err
	}
	rows.Conversion.Init = r.table.init
	return r.copyRows(ctx, t.Earlier(), warmstart.NewConverter(rows.Conversion))
}

// cloneRows makes the run's table a clone of the earlier one.
func (r *run) cloneRows(ctx context.Context) error {
	o, err := r.newTable()
	if err != nil {
		return err
	}
	if err := r.arriving.Clone(ctx, r.models.Previous, &o); err != nil {
		return err
	}
	info, err := r.models.Previous.CloneTable(ctx, o)
	if err != nil {
		return err
	}
	err = r.openTable(ctx, info.Snapshot.ID)
	if other := (*sparsetable.LayoutError)(nil); errors.As(err, &other) {
		return r.otherRows(other.Have, other.Want)
	}
	if err != nil {
		return err
	}
	r.table.base = info.Snapshot.ID
	r.log.Info("warm start", "model", r.models.Previous.Name, "rows", info.Snapshot.Rows, "step", r.models.Previous.Step,
		"shared_bytes", info.LinkedBytes, "copied_bytes", info.CopiedBytes, "index_bytes", info.Snapshot.Bytes)
	return nil
}

// otherRows returns the error of an earlier model whose table does not match its job.
func (r *run) otherRows(have, want sparsetable.Layout) error {
	reason := fmt.Sprintf("its table has %d values per row, but its job has %d", have.ValueDim, want.ValueDim)
	if have.ValueDim == want.ValueDim {
		reason = fmt.Sprintf("its table has rows of %v, but its job has rows of %v", have, want)
	}
	return &modeldir.CorruptionError{File: r.models.Previous.Name, Offset: -1, Reason: reason}
}

// copyRows copies every row of the earlier table to the run's table.
func (r *run) copyRows(ctx context.Context, earlier *configs.Job, c *warmstart.Converter) error {
	if err := r.arriving.Read(r.models.Previous); err != nil {
		return err
	}
	o := jobparts.TableOptions(earlier)
	o.Logger = r.log
	table, err := r.models.Previous.OpenTable(ctx, o)
	if err != nil {
		return err
	}
	defer table.Close()
	if have := table.Layout(); have != c.From {
		return r.otherRows(have, c.From)
	}
	n, seconds, err := warmstart.CopyRows(ctx, table, r.table.Table, c, r.log)
	if err != nil {
		return err
	}
	r.log.Info("warm start", "model", r.models.Previous.Name, "rows", n, "step", r.models.Previous.Step, "seconds", seconds)
	return nil
}
