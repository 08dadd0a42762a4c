package jobparts

import (
	"errors"
	"fmt"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// TableOptions returns the options of a job's table, except for its directories and the layout of
// its rows.
func TableOptions(job *configs.Job) sparsetable.Options {
	t := &job.SparseTable
	return sparsetable.Options{
		Kind: t.Kind, MemoryBytes: int64(t.MemoryBytes),
		SSD: sparsetable.SSDOptions{
			CachePolicy: t.CachePolicy, LookaheadPasses: t.LookaheadPasses, MaxSpaceAmplification: t.MaxSpaceAmplification,
			DirBudgetBytes: int64(t.DirBudgetBytes), HotBytes: int64(t.HotBytes), QueueDepth: t.QueueDepth, Direct: t.DirectIO,
		},
	}
}

// RowLayout returns the optimizer of the rows of a job's table, and the layout of a row.
func RowLayout(job *configs.Job, spec model.Spec) (rows *optim.Rows, l sparsetable.Layout, err error) {
	if l.Format, err = sparsetable.ParseValueFormat(job.SparseTable.ValueFormat); err != nil {
		err = fmt.Errorf("sparse_table.value_format: %w", err)
	}
	l.ValueDim = max(spec.RowDim(), 1)
	rows, e := optim.NewRows(rowConfig(job.Optimizer.Rows), l.ValueDim)
	if e != nil {
		return nil, l, errors.Join(err, fmt.Errorf("optimizer.rows: %w", e))
	}
	if linear := job.Optimizer.Linear; linear != nil {
		if rows, e = optim.NewLinearRows(rowConfig(*linear), rowConfig(job.Optimizer.Rows), l.ValueDim); e != nil {
			return nil, l, errors.Join(err, fmt.Errorf("optimizer.linear: %w", e))
		}
	}
	l.StateDim = rows.StateDim()
	if rows.Decays() {
		l.StateDim++ // for the clock
	}
	return rows, l, err
}
