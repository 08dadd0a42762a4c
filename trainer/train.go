package trainer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/profiled"
	"aibox/internal/errkind"
	"aibox/internal/kernel"
	"aibox/internal/panics"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/start"
)

// Options are settings of a run that are not in the job file.
type Options struct {
	Logger  *slog.Logger   // nil: slog.Default()
	Status  *report.Status // kept up to date during the run; may be nil
	Version string         // of the binary, recorded with the model
	// WaitUntil is the time until which Train waits while another run has locked the model
	// directory. With the zero value it does not wait.
	WaitUntil time.Time
	Fresh     bool // do not resume an interrupted run
	// KernelTimes, if not nil, gets the times of all operations on devices. Measuring them makes
	// the run slower.
	KernelTimes *profiled.Times

	failures *diskFailures // those that Train has survived
	// afterPass is called between two passes of training, by tests.
	afterPass func(context.Context, *run) error
	// atStage is called while a snapshot is saved, by tests.
	atStage func(stage string)
	// freeBytes, if set, replaces the free space of a directory's file system, in tests.
	freeBytes func(dir string) int64
	// platform has the devices of engine.kind: cuda; nil stands for those of the machine.
	platform gpu.Platform
	// tableFS, if set, is the file system for snapshots of a table in memory, in tests.
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

// Train runs job and commits its model to job.Output.ModelDir. When it fails or ctx is cancelled,
// the directory's earlier model, if any, stays. A *ResumableError says that the next Train of the
// same job resumes from the last snapshot. If a disk of the table fails, Train does so in the same
// call.
func Train(ctx context.Context, job *configs.Job, opts Options) (summary *report.Summary, err error) {
	defer panics.Catch("the end of training", &err)
	opts.ensureDefaults()
	opts.failures = new(diskFailures)
	kernel.SetThreads(job.Pipeline.ComputeThreads)
	var failed *loss // after which the job begins again
	for {
		r := newRun(job, opts)
		r.loss = failed
		r.leaveOutFailed()
		if err = r.do(ctx); err == nil {
			err = r.publishTrained(ctx)
			if err == nil && r.summary.NotPublished == "" && r.job.Snapshots.Remote != "" && r.identity != nil {
				r.store().Remove(ctx, r.identity)
			}
			if r.again == nil {
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
		// Start again from the beginning, because the other run may write the model that this one
		// is to start from.
		opts.Logger.Info("another run is writing the model directory; waiting until it ends", "model_dir", job.Output.ModelDir, "until", opts.WaitUntil.Format(time.DateTime))
		if err := modeldir.WaitUnlocked(ctx, job.Output.ModelDir, opts.WaitUntil); err != nil {
			return nil, err
		}
	}
}

func newRun(job *configs.Job, opts Options) *run {
	r := &run{
		task:   task{job: job, asked: job, opts: opts, log: opts.Logger},
		models: models{Model: start.Model{Chain: chain.New(job, opts.Logger)}}, history: history{started: time.Now()},
	}
	r.snapshots = newSnapshots(r)
	return r
}

// do trains, and frees everything at the end.
func (r *run) do(ctx context.Context) error {
	r.grace = ctx
	if r.snapshots.pace.On() {
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
		if err = r.epochs(ctx); err == nil {
			err = r.arrived(ctx)
		}
		if err != nil && errkind.Of(ctx, err) == errkind.Interrupted {
			r.snapshots.onStop()
		}
	}
	if err == nil {
		err = r.finish(r.grace)
	}
	err = r.models.Explain(ctx, r.arriving.MarkDamaged(r.tableFailed(ctx, err)))
	if err != nil && errkind.Of(ctx, err) == errkind.Usage {
		return errkind.As(errkind.Job, err) // all options of a training job come from its file
	}
	return err
}
