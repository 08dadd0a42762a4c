package jobparts

import (
	"errors"
	"fmt"
	"log/slog"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// Parts are the schema, model, optimizers and options of a job that can be made from its job file
// alone.
type Parts struct {
	Schema   reader.Schema // without data statistics
	Spec     model.Spec
	Rows     *optim.Rows
	Schedule optim.Schedule
	Layout   sparsetable.Layout

	Precision engine.Precision
}

// Make makes all parts that it can, and reports all faults.
func Make(job *configs.Job) (p Parts, err error) {
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	if start := job.Training.WarmStart; start != configs.WarmStartLatest && disk.SameDir(start, job.Output.ModelDir) {
		errs = append(errs, errors.New("training.warm_start: it is the same directory as output.model_dir, by another path: training would replace the model that it starts from; write latest, to go on from the newest model of that directory every time, or name one of its generations, as DIR@N"))
	}
	if p.Schema, err = Schema(job); err != nil {
		return p, errkind.As(errkind.Usage, errors.Join(append(errs, err)...))
	}
	p.Spec, err = ModelSpec(job, &p.Schema)
	note("model", err)
	_, err = optim.NewDense(denseConfig(job.Optimizer.Dense), nil)
	note("optimizer.dense", err)
	p.Schedule, err = optim.NewSchedule(ScheduleConfig(job.Optimizer.Schedule))
	note("optimizer.schedule", err)
	p.Precision, err = engine.ParsePrecision(job.Engine.Precision)
	note("engine.precision", err)
	if p.Rows, p.Layout, err = RowLayout(job, p.Spec); err != nil {
		errs = append(errs, err)
	}
	table := TableOptions(job)
	table.Layout, table.Dir, table.SSD.Dirs = p.Layout, job.Output.ModelDir, job.SparseTable.Dirs
	if err = table.Validate(); err == nil {
		err = table.CheckBudget()
	}
	note("sparse_table", err)
	log := slog.New(slog.DiscardHandler)
	sources := jobsource.New(job, log)
	o := ReaderOptions(job, sources, WithoutStatistics(p.Schema), log)
	note("data", reader.Check(TrainReaderOptions(o, job, 0, 0)))
	note("data", sources.Close())
	if err := errors.Join(errs...); err != nil {
		return p, errkind.As(errkind.Usage, err)
	}
	return p, nil
}
