package trainer

import (
	"context"
	"os"
	"slices"
	"time"

	"aibox/internal/kernel"
	"aibox/internal/process"
	"aibox/trainer/arriving"
	"aibox/trainer/dataset"
	"aibox/trainer/densefile"
	"aibox/trainer/engine"
	"aibox/trainer/forecast"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/start"
	"aibox/trainer/tensorfile"
)

// prepare opens everything that can fail for reasons that the user can correct, before training
// begins: the data for training and evaluation, the earlier model, and the model directory. If the
// same job was interrupted, it opens what that run left.
func (r *run) prepare(ctx context.Context) error {
	r.opts.Status.Begin(report.PhaseStarting, 0, r.job.Training.Epochs, nil, nil)
	var err error
	if r.Parts, err = jobparts.Make(r.job); err != nil {
		return err
	}
	if err := r.openPlatform(); err != nil {
		return err
	}
	if r.opts.platform == nil && r.Precision == engine.BF16 && !kernel.HasBF16() {
		r.log.Info("bf16 is somewhat slower than float32 here, since the processor has no faster instruction for it; the model is the same as elsewhere", "kernels", kernel.Level())
	}
	warnOfLimits(r.log)
	r.log.Info("job", "name", r.job.Name, "date", r.job.Date.Format(time.DateOnly), "timezone", r.job.Timezone)
	r.data = dataset.New(r.job, r.opts.Status, r.log)
	r.models.Options = start.Options{
		Job: r.job, Sources: r.data.Sources, Version: r.opts.Version, Fresh: r.opts.Fresh, Log: r.log, IfGone: r.alreadyMade, Restored: &r.arriving.Restored,
	}
	r.arriving.Options = arriving.Options{Job: r.job, Sources: r.data.Sources, Status: r.opts.Status, Log: r.log, Begin: func(a *remote.Arriving) { startArriving(a) }}
	if err := r.checkOutputs(ctx); err != nil {
		return err
	}
	if err := r.missing(ctx, r.data.List(ctx)); err != nil {
		return err
	}
	if err := forecast.DenseFits(r.job, r.Spec, process.FreeWithSwap()); err != nil {
		return err
	}
	r.warnOfMemory(ctx)
	on, err := r.resume(ctx)
	if err == nil && !on {
		fetched := false
		if fetched, err = r.fetchSnapshot(ctx); fetched {
			on, err = r.resume(ctx)
		}
	}
	if err == nil && !on {
		err = r.begin(ctx)
	}
	if err == nil {
		r.models.RemoveLeft()
		r.snapshots.upload()
	}
	return err
}

// startArriving begins to fetch the missing files. Tests replace it.
var startArriving = (*remote.Arriving).Start

// openData checks the listed data. The day on which they are trained must be known.
func (r *run) openData(ctx context.Context) error {
	r.data.SetSchema(r.Schema)
	return r.data.Check(ctx)
}

// begin prepares a run that does not resume another one.
func (r *run) begin(ctx context.Context) error {
	err := r.models.Open(ctx)
	if lost := r.models.Lost; lost != nil && r.loss == nil {
		r.loss = &loss{err: lost}
	}
	if err != nil {
		return err
	}
	if r.models.Later != "" {
		r.state.Warnings = append(r.state.Warnings, r.models.Later)
	}
	if err := r.checkFirstRemote(ctx); err != nil {
		return err
	}
	if r.table.day, err = r.models.Day(); err != nil {
		return err
	}
	if err := r.openData(ctx); err != nil {
		return err
	}
	if err := r.checkPlaces(); err != nil {
		return err
	}
	if r.models.writer, err = modeldir.Create(r.job.Output.ModelDir); err != nil {
		return err
	}
	r.trim()
	if err := r.models.Check(); err != nil {
		return err
	}
	r.recovered(r.beginning(), report.Resumption{})
	if r.data.Quarantine, err = dataset.OpenQuarantine(r.models.writer.Report(report.QuarantineName), os.O_TRUNC); err != nil {
		return err
	}
	if err := r.data.HoldOut(ctx); err != nil {
		return err
	}
	if err := r.data.Scan(ctx, &r.Schema, r.models.Previous); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if r.reports, err = report.OpenWriter(r.job, r.models.writer, nil); err != nil {
		return err
	}
	return r.build(ctx)
}

// build makes model, optimizers, table and engine, from the earlier model if there is one.
func (r *run) build(ctx context.Context) error {
	if err := r.makeModel(); err != nil {
		return err
	}
	fill := func(ctx context.Context) error {
		if err := r.decayRows(); err != nil {
			return err
		}
		return r.openTable(ctx, 0)
	}
	if r.models.Previous != nil {
		fill = r.warmStart
	}
	if err := fill(ctx); err != nil {
		return err
	}
	r.models.Remove()
	r.arriving.Ready()
	if err := r.lookAtFirst(ctx); err != nil {
		return err
	}
	return r.makeEngine()
}

// lookAtFirst warns of what is odd about the first examples, and sets the output bias of a model that
// does not take it over from an earlier one. A run that resumes from a snapshot has it in its
// parameters.
func (r *run) lookAtFirst(ctx context.Context) error {
	bias := r.model.OutputBias()
	p := r.models.Previous
	continues := p != nil && slices.ContainsFunc(p.Dense, func(t tensorfile.Tensor) bool { return t.Name == densefile.ParamPrefix+bias.Name })
	l, err := r.data.FirstLook(ctx, len(r.Spec.Dense), len(r.Spec.Fields))
	if err != nil {
		return err
	}
	for _, text := range l.Warnings(r.Schema.Columns, r.Spec.Dense, r.Spec.Fields, continues) {
		r.state.Warnings = append(r.state.Warnings, text)
		r.log.Warn(text)
	}
	if continues {
		return nil
	}
	value, given := r.job.Model.InitialBias.Number()
	if !given {
		value = l.LogOdds()
		r.log.Info("the output bias starts at the log odds of the first examples", "initial_bias", metrics.Rounded(metrics.Value(value)), "examples", l.Examples, "base_rate", metrics.Rounded(metrics.Value(l.Rate())))
	}
	bias.Data[0] = float32(value)
	r.state.Engine.Dense.Average(bias)[0] = float32(value)
	r.state.InitialBias = &value
	return nil
}

// decayRows sets up the decay of the rows of a new model, if they are to decay.
func (r *run) decayRows() (err error) {
	r.state.Engine.Decay, _, err = jobparts.NewDecay(r.job, r.Rows, nil, 0)
	return err
}

// makeModel makes a new model, its optimizers, and the function that initializes the rows of its
// table.
func (r *run) makeModel() error {
	job := r.job
	var err error
	if r.model, err = model.New(r.Spec); err != nil {
		return err
	}
	if err := checkSizes(job, r.model.Network()); err != nil {
		return err
	}
	if r.state.Engine.Dense, err = jobparts.NewDense(job, r.model.Params()); err != nil {
		return err
	}
	r.state.Engine.RowSteps = engine.NewRowSteps(jobparts.Spaces(job, r.Spec.Fields))
	r.table.init = jobparts.NewRowInit(r.Layout, r.Rows, job.Seed, *job.SparseTable.InitStddev)
	return nil
}
