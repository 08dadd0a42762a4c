package trainer

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
)

// epochs trains until the epochs, the examples or the patience are used up.
func (r *run) epochs(ctx context.Context) error {
	t := r.job.Training
	for epoch := 1; epoch <= t.Epochs; epoch++ {
		limit := r.job.Data.Limit
		if t.MaxExamples > 0 {
			left := t.MaxExamples - r.state.Examples
			if left <= 0 {
				break
			}
			if limit == 0 || left < limit {
				limit = left
			}
		}
		if err := r.trainEpoch(ctx, epoch, limit); err != nil {
			return err
		}
		r.state.Last = &kept{Epoch: epoch, Step: r.state.Engine.Step, Examples: r.state.Examples}
		if len(r.job.Data.Eval) > 0 {
			report, err := r.evaluate(ctx, epoch)
			if err != nil {
				return err
			}
			r.state.Last.Eval = &report
		}
		if t.EarlyStopping == nil {
			continue
		}
		best, enough, err := r.state.Stopping.epoch(t.EarlyStopping, r.state.Last.Eval)
		if err != nil {
			return err
		}
		if best {
			if err := r.keepBest(ctx); err != nil {
				return err
			}
		}
		if enough {
			r.log.Info("early stopping", "epoch", epoch, "best_epoch", r.state.Best.Epoch, "metric", t.EarlyStopping.Metric)
			break
		}
	}
	return nil
}

// keepBest saves the current state as the best so far.
func (r *run) keepBest(ctx context.Context) error {
	if err := r.models.writer.SaveDense(modeldir.DenseName(r.state.Last.Step), r.tensors(r.state.Last.Step)); err != nil {
		return err
	}
	id, err := r.snapshot(ctx, r.state.Last.Step)
	if err != nil {
		return err
	}
	if r.state.Best != nil {
		r.models.writer.RemoveDense(modeldir.DenseName(r.state.Best.Step))
		if err := r.table.DropSnapshot(r.state.Best.Snapshot); err != nil {
			return err
		}
	}
	best := *r.state.Last
	best.Snapshot = id
	r.state.Best = &best
	return nil
}

func (r *run) snapshot(ctx context.Context, step int64) (uint64, error) {
	m := modeldir.Manifest{Step: step, Dense: modeldir.DenseName(step)}
	pending, err := r.table.Snapshot(ctx, m.TableRecord())
	if err != nil {
		return 0, fmt.Errorf("table snapshot: %w", err)
	}
	info, err := pending.Wait()
	if err != nil {
		return 0, fmt.Errorf("table snapshot: %w", err)
	}
	if r.table.base != 0 { // it would hold files that the table does not need any more
		if err := r.table.DropSnapshot(r.table.base); err != nil {
			return 0, fmt.Errorf("table snapshot: %w", err)
		}
		r.table.base = 0
	}
	return info.ID, nil
}

// reportBadRows makes only the first epoch log and record bad rows, since later ones
// find the same.
func (r *run) reportBadRows(o *reader.Options, epoch int) {
	if epoch == 1 {
		o.Quarantine = r.data.quarantine
	} else {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// trainEpoch reads the training data once.
func (r *run) trainEpoch(ctx context.Context, epoch int, limit int64) error {
	o := r.trainOptions(epoch-1, limit)
	r.reportBadRows(&o, epoch)
	rd, err := openReader(ctx, o)
	if err != nil {
		return fmt.Errorf("data.train: %w", err)
	}
	defer rd.Close()
	status := r.opts.Status
	status.begin(PhaseTraining, epoch, r.job.Training.Epochs, rd, r.table.Table)
	status.limit(limit)
	defer status.end()
	r.state.Epoch, r.state.Passes, r.state.Online = epoch, 0, newOnline()
	f := flow{
		reader: rd, table: r.table.Table, mode: sparsetable.PullCreate, limit: &r.table.passLimit, bytes: &r.table.passBytes, log: r.log,
		readQueue: r.job.Pipeline.ReadQueue, pullQueue: r.job.Pipeline.PullQueue,
		readAheadBytes: int64(r.job.Pipeline.ReadAheadBytes),
		started:        status.pipeline,
		engine:         r.engine,
		batch: func(b *reader.Batch) error {
			return r.engine.Train(engine.Batch{Batch: b}, func(res *engine.Result) error {
				r.state.Examples += int64(res.Batch.N)
				status.batch(res.Step, res.Batch.N)
				return r.scored(res)
			})
		},
		passDone: func(p *reader.Pass) error {
			status.bytes(p.Bytes)
			r.state.Passes++
			if r.opts.afterPass == nil {
				return nil
			}
			return r.opts.afterPass(ctx, r)
		},
	}
	start, cpu := time.Now(), processorTime()
	stages, err := f.run(ctx)
	if epoch == 1 {
		r.summary.TrainRows = readingSummary(rd.Counts())
	}
	if err == nil {
		err = r.engine.Check()
	}
	if err != nil {
		return err
	}
	report, err := r.epochMetrics()
	if err != nil {
		return err
	}
	r.state.addEpoch(epoch, report, stages, time.Since(start), processorTime()-cpu)
	r.log.Info("epoch trained", "epoch", epoch, "examples", report.Examples, "log_loss", rounded(report.LogLoss),
		"auc", rounded(report.AUC), "seconds", math.Round(10*time.Since(start).Seconds())/10)
	table := r.table.Stats()
	memory := r.memory(table)
	r.log.Info("memory in bytes", memory.Attrs()...)
	if table.Kind == sparsetable.KindSSD {
		r.log.Info("table on SSD", table.Attrs()...)
	}
	return nil
}

// evaluate measures the model on data.eval after an epoch.
func (r *run) evaluate(ctx context.Context, epoch int) (metrics.Report, error) {
	o := r.data.base
	o.Listing = r.data.eval
	r.reportBadRows(&o, epoch)
	rd, err := openReader(ctx, o)
	if err != nil {
		return metrics.Report{}, fmt.Errorf("data.eval: %w", err)
	}
	defer rd.Close()
	r.opts.Status.begin(PhaseEvaluating, epoch, r.job.Training.Epochs, rd, r.table.Table)
	defer r.opts.Status.end()
	ev := evaluation{
		engine: r.engine, table: r.table.Table, limit: &r.table.passLimit, bytes: &r.table.passBytes, status: r.opts.Status, log: r.log, shift: logShare(r.job.Data.NegativeSampling),
		readQueue: r.job.Pipeline.ReadQueue, pullQueue: r.job.Pipeline.PullQueue,
		readAheadBytes: int64(r.job.Pipeline.ReadAheadBytes),
	}
	report, err := ev.run(ctx, rd, true, r.job.Data.GroupBy != "")
	if epoch == 1 {
		r.summary.EvalRows = readingSummary(rd.Counts())
	}
	if err != nil {
		return report, fmt.Errorf("evaluating: %w", err)
	}
	r.state.addEvaluation(epoch, report)
	r.log.Info("evaluated", "epoch", epoch, "examples", report.Examples, "log_loss", rounded(report.LogLoss), "auc", rounded(report.AUC))
	return report, r.reports.evaluation(epoch, r.state.Engine.Step, report)
}

// rounded formats a figure with few digits for the log.
func rounded(v metrics.Value) string {
	if !v.Defined() {
		return "undefined"
	}
	return strconv.FormatFloat(float64(v), 'f', 5, 64)
}

// logShare is the shift of logits that undoes negative down-sampling: keeping
// a share s of the negatives multiplies the odds by 1/s.
func logShare(share float64) float32 { return kernel.Log(float32(share)) }
