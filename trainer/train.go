package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/profiled"
	"aibox/internal/errkind"
	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/sparsetable"
	"aibox/trainer/arriving"
	"aibox/trainer/chain"
	"aibox/trainer/dataset"
	"aibox/trainer/densefile"
	"aibox/trainer/engine"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/start"
)

// Options are settings of a run that are not in the job file.
type Options struct {
	Logger  *slog.Logger   // nil: slog.Default()
	Status  *report.Status // is kept up to date during the run; nil: none
	Version string         // of the binary, recorded with the model
	// WaitUntil is how long Train waits while another run has locked the model directory.
	// The zero value means not at all.
	WaitUntil time.Time
	Fresh     bool // do not go on with an interrupted run
	// KernelTimes gets the times of all operations on devices, which makes the run slower; nil: they are not measured.
	KernelTimes *profiled.Times

	failures *diskFailures // that Train has survived
	// afterPass is called between two passes of training, by tests.
	afterPass func(context.Context, *run) error
	// atStage is called while a snapshot is saved, by tests.
	atStage func(stage string)
	// freeBytes, if set, is the free space of a directory's file system, in tests.
	freeBytes func(dir string) int64
	// platform has the devices of engine.kind: cuda; nil: those of the machine.
	platform gpu.Platform
	// tableFS, if set, is what a table in memory saves its snapshots to, in tests.
	tableFS sparsetable.FS
}

func (o *Options) ensureDefaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Status == nil {
		o.Status = new(report.Status)
	}
}

// Train runs job and commits its model to job.Output.ModelDir. When it fails or ctx is
// cancelled, the directory's earlier model, if any, stays. If the same job was interrupted
// before, Train goes on from its last snapshot; a *ResumableError says that it can. If a disk of
// the table fails, it does so by itself.
func Train(ctx context.Context, job *configs.Job, opts Options) (summary *report.Summary, err error) {
	defer panics.Catch("the end of training", &err)
	opts.ensureDefaults()
	opts.failures = new(diskFailures)
	kernel.SetThreads(job.Pipeline.ComputeThreads)
	var failed *loss // after which the job has begun again
	for {
		r := newRun(job, opts)
		r.loss = failed
		err = r.do(ctx)
		if err == nil {
			again, err := r.publishTrained(ctx)
			if err == nil && r.summary.NotPublished == "" && r.job.Snapshots.Remote != "" && r.identity != nil {
				r.store().Remove(ctx, r.identity)
			}
			if !again {
				return &r.summary, err
			}
		}
		if r.again != nil {
			failed, opts = r.again, r.opts
			continue
		}
		if !errors.Is(err, modeldir.ErrLocked) || !time.Now().Before(opts.WaitUntil) {
			return nil, err
		}
		// It starts again from the beginning, because the other run may write the model
		// that this one is to start from.
		opts.Logger.Info("another run writes the model directory; waiting until it ends", "model_dir", job.Output.ModelDir, "until", opts.WaitUntil.Format(time.DateTime))
		if err := modeldir.WaitUnlocked(ctx, job.Output.ModelDir, opts.WaitUntil); err != nil {
			return nil, err
		}
	}
}

func newRun(job *configs.Job, opts Options) *run {
	r := &run{job: job, opts: opts, log: opts.Logger, started: time.Now(), models: models{Model: start.Model{Chain: chain.New(job, opts.Logger)}}}
	r.snapshots = newSnapshots(r)
	return r
}

// do trains, and frees everything in the end.
func (r *run) do(ctx context.Context) error {
	r.grace = ctx
	if r.snapshots.on() {
		var stop func()
		r.grace, stop = withGrace(ctx, time.Duration(r.job.Snapshots.OnStopSeconds*float64(time.Second)))
		defer stop()
	}
	err := panics.Do("training", func() error { return r.train(ctx) })
	return r.close(ctx, err)
}

// train runs the job from its first look at the data to the commit.
func (r *run) train(ctx context.Context) error {
	err := r.prepare(ctx)
	if errors.Is(err, errMade) {
		return nil
	}
	if err == nil && r.final == nil {
		if err = r.epochs(ctx); err != nil && errkind.Of(ctx, err) == errkind.Interrupted {
			r.snapshots.onStop()
		}
	}
	if err == nil {
		err = r.finish(r.grace)
	}
	err = r.models.Explain(r.arriving.Distrust(r.tableFailed(ctx, err)))
	if err != nil && errkind.Of(ctx, err) == errkind.Usage {
		return errkind.As(errkind.Job, err) // all options of a training job come from its file
	}
	return err
}

// run is one run of a training job.
type run struct {
	job     *configs.Job
	opts    Options
	log     *slog.Logger
	started time.Time

	jobparts.Parts
	data     dataset.Data
	models   models
	arriving arriving.Files // of its table
	reports  *report.Writer

	model   *model.Model
	table   runTable
	engine  engine.Engine
	state   runstate.State
	summary report.Summary

	// grace is the context of what may be completed after the run was told to stop.
	grace     context.Context
	snapshots *snapshots
	identity  []byte         // of the run, as in snapshots
	clock     runstate.Clock // of the present epoch
	scoring   scoring
	midway    bool            // the state is not one that another process can go on from
	final     *runstate.Final // the trained model, once its files are complete
	setbacks
}

// elapsed is how many seconds the run has taken, those between its processes left out.
func (r *run) elapsed() float64 { return r.earlier + time.Since(r.started).Seconds() }

// models are the models that a run has to do with, and their directories.
type models struct {
	start.Model // from which the run starts
	writer      *modeldir.Writer
}

// runTable is the table that a run trains.
type runTable struct {
	sparsetable.Table
	init      func(key uint64, row []float32)
	dirs      []string // outside of the model directory; nil: there are none
	base      uint64   // the snapshot that was cloned, until the run has one of its own; 0: none
	day       uint32   // of the rows that the run trains
	passLimit flow.Limit
	passBytes flow.Gauge
}

// prepare opens, before training begins, everything that can fail for reasons that the
// user can correct: the data for training and evaluation, the earlier model, and the
// model directory. If the same job was interrupted, it opens what that run left.
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
	warnOfAddressSpace(r.log)
	r.log.Info("job", "name", r.job.Name, "date", r.job.Date.Format(time.DateOnly), "timezone", r.job.Timezone)
	r.data = dataset.New(r.job, r.opts.Status, r.log)
	r.models.Options = start.Options{
		Job: r.job, Sources: r.data.Sources, Version: r.opts.Version, Fresh: r.opts.Fresh, Log: r.log, IfGone: r.alreadyMade, Restored: &r.arriving.Restored,
	}
	r.arriving.Options = arriving.Options{Job: r.job, Sources: r.data.Sources, Status: r.opts.Status, Log: r.log, Begin: func(a *remote.Arriving) { startArriving(a) }}
	if err := r.checkOutputs(ctx); err != nil {
		return err
	}
	if err := r.data.List(ctx); err != nil {
		return err
	}
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

// resume goes on with an interrupted run, if there is one, and reports whether it does.
func (r *run) resume(ctx context.Context) (bool, error) {
	data, x, id, err := r.interrupted()
	if err != nil || x == nil {
		return false, err
	}
	r.table.day = x.Day
	if err := r.openData(ctx); err != nil {
		return false, err
	}
	err = r.goOn(ctx, data, x, id)
	var lost *modeldir.LostError
	var gone *remote.DamagedError
	if errors.As(err, &lost) { // perhaps for a moment only
		r.log.Warn("the table of an interrupted run cannot be opened; this is tried once more", "error", err)
		if err := r.suspend(); err != nil {
			return false, err
		}
		err = r.goOn(ctx, data, x, id)
	}
	switch {
	case err == nil:
		r.recovered(r.snapshotSource(), x.Place())
		return true, nil
	case errors.As(err, &lost):
		// Where the model directory fails, too, nothing is known to be lost.
		if e := r.models.writer.SaveResume(data); e != nil {
			return false, errors.Join(err, e)
		}
		// Then what is left is not whole.
		incomplete := r.arriving.Arriving != nil || modeldir.InterruptedArrives(r.job.Output.ModelDir)
		if err := r.suspend(); err != nil {
			return false, err
		}
		if !incomplete && !r.refilled { // else what is left after that cannot be used either
			if done, err := r.partially(ctx, data, x, id, lost); err != nil {
				return false, err
			} else if done {
				return r.resume(ctx)
			}
		}
		r.lostTable(lost, x)
		return false, nil
	case !modeldir.Damaged(err) && !errors.As(err, &gone):
		return false, err
	}
	if r.arriving.Arriving != nil {
		r.arriving.Distrusted = r.arriving.ID()
	}
	if r.loss != nil {
		r.loss.snapshots = true
	}
	r.log.Warn("the snapshot of an interrupted run is damaged; training starts over, unless snapshots.remote has one", "error", err)
	if err := r.giveUp(); err != nil {
		r.log.Warn("the files of an interrupted run could not be deleted; the next run tries again", "error", err)
	}
	return false, nil
}

// fetchSnapshot brings the newest snapshot of this job from snapshots.remote to this
// machine, as what an interrupted run left, and reports whether there is one.
func (r *run) fetchSnapshot(ctx context.Context) (bool, error) {
	if r.job.Snapshots.Remote == "" || !r.snapshots.on() || r.opts.Fresh {
		return false, nil
	}
	before := remotesnapshots.Before{Distrusted: r.arriving.Distrusted, Models: func() bool {
		c, _ := r.models.Chain.Latest() // whoever starts from it says what is wrong
		return c != nil || r.models.Chain.Exists()
	}}
	if l := r.loss; l != nil {
		before.Lost, before.Uploaded, before.Survivors = true, l.uploaded, l.survivors
	}
	brought, err := r.store().Fetch(ctx, before)
	if err != nil || brought == nil {
		return false, err
	}
	r.arriving.Restored = *brought
	return true, nil
}

// startArriving begins to fetch what lacks. Tests replace it.
var startArriving = (*remote.Arriving).Start

// openData checks the listed data, once it is known on which day they are trained.
func (r *run) openData(ctx context.Context) error {
	r.data.SetSchema(r.Schema)
	return r.data.Check(ctx)
}

// begin prepares a run that does not go on with another one.
func (r *run) begin(ctx context.Context) error {
	err := r.models.Open(ctx)
	if lost := r.models.Lost; lost != nil && r.loss == nil {
		r.loss = &loss{err: lost}
	}
	if err != nil {
		return err
	}
	if err := r.checkFirstRemote(); err != nil {
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
	r.models.writer.Keep = r.job.Output.KeepGenerations
	r.logLeftovers()
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

// build makes model, optimizers, table and engine, from the earlier model if
// there is one.
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
	if err := r.initBias(ctx); err != nil {
		return err
	}
	return r.makeEngine()
}

// initBias looks at the first examples and sets the output bias of a model that does not take it
// over from an earlier one. A run that goes on from a snapshot has it in its parameters.
func (r *run) initBias(ctx context.Context) error {
	bias := r.model.OutputBias()
	if p := r.models.Previous; p != nil && slices.ContainsFunc(p.Dense, func(t modeldir.Tensor) bool { return t.Name == densefile.ParamPrefix+bias.Name }) {
		return nil
	}
	l, err := r.data.FirstLook(ctx, len(r.Spec.Dense))
	if err != nil {
		return err
	}
	for _, text := range l.Warnings(r.Schema.Columns, r.Spec.Dense) {
		r.state.Warnings = append(r.state.Warnings, text)
		r.log.Warn(text)
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

// decayRows begins the decay of the rows of a new model, if they are to decay.
func (r *run) decayRows() (err error) {
	r.state.Engine.Decay, _, err = jobparts.NewDecay(r.job, r.Rows, nil, 0)
	return err
}

// makeModel makes a new model, its optimizers, and what fills the rows of its table.
func (r *run) makeModel() error {
	job := r.job
	var err error
	if r.model, err = model.New(r.Spec); err != nil {
		return err
	}
	if r.state.Engine.Dense, err = jobparts.NewDense(job, r.model.Params()); err != nil {
		return err
	}
	r.state.Engine.RowSteps = engine.NewRowSteps(jobparts.Spaces(job, r.Spec.Fields))
	r.table.init = jobparts.NewRowInit(r.Layout, r.Rows, job.Seed, *job.SparseTable.InitStddev)
	return nil
}

// newTable returns the options of the run's table, whose directories it makes.
func (r *run) newTable() (sparsetable.Options, error) {
	if r.table.dirs == nil {
		var err error
		if r.table.dirs, err = r.models.writer.PlaceTable(r.job.SparseTable.Dirs); err != nil {
			return sparsetable.Options{}, fmt.Errorf("sparse_table.dirs: %w", err)
		}
		for _, o := range r.models.writer.Freed() {
			r.log.Info("the table of a run that was killed is deleted", "dir", o.Dir, "bytes", o.Bytes, "model_dir", o.ModelDir)
		}
	}
	return r.placedTable(), nil
}

// placedTable is newTable once it is known where the table is.
func (r *run) placedTable() sparsetable.Options {
	o := jobparts.TableOptions(r.job)
	o.Dir, o.SSD.Dirs = r.models.writer.TableDir(), r.table.dirs
	o.Layout, o.Init, o.Logger, o.FS = r.Layout, r.table.init, r.log, r.opts.tableFS
	o.SSD.Source = r.arriving.Source()
	return o
}

// openTable opens the run's table: empty, or at a snapshot of this run.
func (r *run) openTable(ctx context.Context, snapshot uint64) error {
	o, err := r.newTable()
	if err != nil {
		return err
	}
	return r.openTableIn(ctx, o, snapshot)
}

// openTableIn opens the run's table in the place that o says.
func (r *run) openTableIn(ctx context.Context, o sparsetable.Options, snapshot uint64) error {
	o.SnapshotID, o.MustExist = snapshot, snapshot != 0
	t, err := sparsetable.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("sparse_table: %w", err)
	}
	r.table.Table = t
	return nil
}
