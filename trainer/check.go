package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// parts are the schema, model, optimizers and options of a job, as far as they can be
// made from its job file alone.
type parts struct {
	schema   reader.Schema // without data statistics
	spec     model.Spec
	rows     *optim.Rows
	schedule optim.Schedule
	layout   sparsetable.Layout

	precision engine.Precision
}

// Check reports everything in a job that training would refuse before it opens
// any of the job's files. Package configs has reported the faults that belong to a
// line of the job file; Check reports the others, among them outputs that would
// overwrite local files that the job reads.
func Check(ctx context.Context, job *configs.Job) error {
	_, err := makeParts(job)
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	local := slices.DeleteFunc(Inputs(job), func(uri string) bool { return !source.IsLocal(uri) })
	err = errors.Join(err, sources.RefuseOverwrite(ctx, local, jobOutputs(job)), sources.Close())
	return errkind.As(errkind.Job, err) // all options of a training job come from its file
}

// makeParts makes what it can and reports all faults.
func makeParts(job *configs.Job) (p parts, err error) {
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	if start := job.Training.WarmStart; start != configs.WarmStartLatest && sameDir(start, job.Output.ModelDir) {
		errs = append(errs, errors.New("training.warm_start: it is the same directory as output.model_dir, by another path: training would replace the model that it starts from; write latest, to go on from the newest model of that directory every time, or name one of its generations, as DIR@N"))
	}
	if p.schema, err = Schema(job); err != nil {
		return p, &OptionError{errors.Join(append(errs, err)...)}
	}
	p.spec, err = modelSpec(job, &p.schema)
	note("model", err)
	_, err = optim.NewDense(denseConfig(job.Optimizer.Dense), nil)
	note("optimizer.dense", err)
	p.schedule, err = optim.NewSchedule(scheduleConfig(job.Optimizer.Schedule))
	note("optimizer.schedule", err)
	p.precision, err = engine.ParsePrecision(job.Engine.Precision)
	note("engine.precision", err)
	if p.rows, p.layout, err = rowLayout(job, p.spec); err != nil {
		errs = append(errs, err)
	}
	table := tableOptions(job)
	table.Layout, table.Dir, table.SSD.Dirs = p.layout, job.Output.ModelDir, job.SparseTable.Dirs
	if err = table.Validate(); err == nil {
		err = table.CheckBudget()
	}
	note("sparse_table", err)
	log := slog.New(slog.DiscardHandler)
	sources := jobsource.New(job, log)
	o := readerOptions(job, sources, withoutStatistics(p.schema), log)
	note("data", reader.Check(trainReaderOptions(o, job, 0, 0)))
	note("data", sources.Close())
	if err := errors.Join(errs...); err != nil {
		return p, &OptionError{err}
	}
	return p, nil
}

// sameDir reports whether two paths lead to the same directory, possibly through links.
func sameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// rowLayout returns the optimizer of the rows of a job's table, and what a row consists of.
func rowLayout(job *configs.Job, spec model.Spec) (rows *optim.Rows, l sparsetable.Layout, err error) {
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
