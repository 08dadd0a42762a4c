package trainer

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"aibox/internal/errkind"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
)

// epochs trains until the epochs, the examples or the patience of early stopping are used up. It
// starts from the state of the run, so it can be called again after an interruption.
func (r *run) epochs(ctx context.Context) error {
	for epoch := max(1, r.state.Epoch); epoch <= r.job.Training.Epochs; epoch++ {
		limit, left := r.epochLimit(epoch)
		if !left || r.state.Stopping.Enough(r.job.Training.EarlyStopping) {
			break
		}
		if r.state.Ended(epoch) {
			continue
		}
		if len(r.state.Epochs) < epoch {
			if err := r.trainEpoch(ctx, epoch, limit); err != nil {
				return err
			}
			if err := r.snapshots.epochTrained(); err != nil {
				return err
			}
		}
		if err := r.evaluateEpoch(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
}

// epochLimit returns the maximum number of examples to train in an epoch, 0 for all, and whether
// any are left to train.
func (r *run) epochLimit(epoch int) (limit int64, left bool) {
	limit = r.job.Data.Limit
	if most := r.job.Training.MaxExamples; most > 0 {
		rest := most - r.state.Before(epoch)
		if rest <= 0 {
			return 0, false
		}
		if limit == 0 || rest < limit {
			limit = rest
		}
	}
	return limit, true
}

// reportBadRows lets only the first epoch log and quarantine bad rows, since later epochs find the
// same ones.
func (r *run) reportBadRows(o *reader.Options, epoch int) {
	if epoch == 1 {
		o.Quarantine = r.data.Quarantine
	} else {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// trainEpoch reads the training data once.
func (r *run) trainEpoch(ctx context.Context, epoch int, limit int64) error {
	r.clock.Start()
	if !r.state.Training(epoch) {
		quarantine, err := r.data.Quarantine.Bytes()
		if err != nil {
			return err
		}
		r.state.Begin(epoch, quarantine)
	}
	o := r.data.TrainOptions(epoch-1, limit)
	o.Start = r.state.Reader
	r.reportBadRows(&o, epoch)
	rd, err := flow.OpenReader(ctx, o)
	if err != nil {
		return fmt.Errorf("data.train: %w", err)
	}
	defer rd.Close()
	status := r.opts.Status
	status.Begin(report.PhaseTraining, epoch, r.job.Training.Epochs, rd, r.table.Table)
	status.Limit(limit)
	status.Resume(r.state.Engine.Step, r.state.Examples-r.state.Before(epoch))
	defer status.End()
	stages, err := r.trainingFlow(ctx, rd).Run(ctx)
	if counted := r.counted(); err == nil {
		err = counted
	}
	r.yieldRows() // so that none is pinned beside those of an evaluation
	if epoch == 1 {
		r.state.TrainRows = report.ReadingOf(rd.Counts())
	}
	if err == nil {
		err = r.engine.Check()
	}
	if err == nil {
		err = r.engine.Export()
	}
	if err != nil {
		return err
	}
	return r.epochTrained(epoch, stages)
}

// trainingFlow returns the flow that trains the passes of one reading of the training data.
func (r *run) trainingFlow(ctx context.Context, rd *reader.Reader) *flow.Flow {
	status := r.opts.Status
	f := &flow.Flow{
		Stages: r.stages(), Reader: rd, Mode: sparsetable.PullCreate, Skip: r.state.Batches - r.state.ReaderBatches, Grace: r.grace,
		Batch: func(b *reader.Batch) error {
			r.midway = true
			return r.engine.Train(engine.Batch{Batch: b}, func(res *engine.Result) error {
				r.state.Examples += int64(res.Batch.N)
				status.Batch(res.Step, res.Batch.N)
				return r.scored(res)
			})
		},
		Hooks: flow.Hooks{
			Started: func(p *pipeline.Pipeline) {
				status.Pipeline(p)
				r.clock.Pipe = p
			},
			Yield:    r.yieldRows,
			Begun:    r.snapshots.passBegun,
			PassDone: func(p *reader.Pass) error { return r.passDone(ctx, p) },
		},
	}
	if jobparts.Prioritized(r.job) {
		f.Begins, f.Ends = r.passBegins, r.passEnds
	}
	return f
}

// passDone is called when all mini-batches of a pass are trained.
func (r *run) passDone(ctx context.Context, p *reader.Pass) error {
	if err := r.counted(); err != nil {
		return err
	}
	r.opts.Status.Bytes(p.Bytes)
	r.state.Trained(p)
	r.midway = false
	if r.opts.afterPass != nil {
		if err := r.opts.afterPass(ctx, r); err != nil {
			return err
		}
	}
	if err := r.arriving.Check(); err != nil {
		return err
	}
	return r.snapshots.passTrained()
}

// epochTrained records and reports the metrics of an epoch that was trained to its end.
func (r *run) epochTrained(epoch int, stages []pipeline.StageStats) error {
	if err := r.readingEnded(); err != nil {
		return err
	}
	report, err := r.epochMetrics()
	if err != nil {
		return err
	}
	if report.WeightSum == 0 {
		at := slices.IndexFunc(r.Schema.Columns, func(c reader.Column) bool { return c.Role == reader.RoleWeight }) // without such a column, weights are 1
		return errkind.Errorf(errkind.Data, "data.train: the weights of all %d examples, in column %s, are 0, so that nothing can be learned from them", report.Examples, r.Schema.Columns[at].Name)
	}
	r.state.AddEpoch(epoch, report, r.clock.Stop(stages), stages)
	r.log.Info("epoch trained", "epoch", epoch, "examples", report.Examples, "log_loss", metrics.Rounded(report.LogLoss),
		"auc", metrics.Rounded(report.AUC), "seconds", math.Round(10*r.state.Epochs[len(r.state.Epochs)-1].Seconds)/10)
	table := r.table.Stats()
	memory := r.memory(table)
	r.log.Info("memory in bytes", memory.Attrs()...)
	if table.Kind == sparsetable.KindSSD {
		r.log.Info("table on SSD", table.Attrs()...)
	}
	return nil
}

// passBegins, passEnds and yieldRows are hooks of the training flow.
func (r *run) passBegins(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.Priority.PassBegins(w)
	}
}

func (r *run) passEnds(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.Priority.PassEnds(w, r.state.Engine.Step)
	}
}

func (r *run) yieldRows() bool {
	u := r.snapshots.uploads
	return u != nil && u.Priority.EndCollecting()
}

// readingEnded records the length of the quarantine file after the data have been read.
func (r *run) readingEnded() (err error) {
	r.state.Quarantine, err = r.data.Quarantine.Bytes()
	return err
}
