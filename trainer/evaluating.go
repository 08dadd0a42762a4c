package trainer

import (
	"context"
	"fmt"

	"aibox/reader"
	"aibox/trainer/flow"
	"aibox/trainer/inference"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// evaluateEpoch evaluates the model after an epoch, and keeps it if it is the best so far.
func (r *run) evaluateEpoch(ctx context.Context, epoch int) error {
	last := &runstate.Kept{Epoch: epoch, Step: r.state.Engine.Step, Examples: r.state.Examples}
	if r.data.Split != nil {
		if err := r.validate(ctx, epoch); err != nil {
			return err
		}
	}
	if len(r.job.Data.Eval) > 0 {
		if err := r.evaluate(ctx, epoch); err != nil {
			return err
		}
	}
	stop := r.job.Training.EarlyStopping
	if stop == nil {
		r.state.Last = last
		return nil
	}
	where, report := r.state.OfEpoch(epoch).Decisive()
	best, err := r.state.Stopping.Judge(stop, where, report)
	if err != nil {
		return err
	}
	r.state.Last = last
	if best {
		r.midway = true
		if err := r.keepBest(r.grace); err != nil {
			return err
		}
		r.midway = false
	}
	if r.state.Stopping.Enough(stop) {
		r.log.Info("early stopping", "epoch", epoch, "best_epoch", r.state.Best.Epoch, "metric", stop.Metric)
	}
	return nil
}

// evaluate measures the model on data.eval after an epoch.
func (r *run) evaluate(ctx context.Context, epoch int) error {
	return r.measure(ctx, epoch, heldOut{
		name: report.EvalData, kind: "eval", options: r.data.EvalOptions(), rows: &r.state.EvalRows,
		of: func(e *report.Epoch) **metrics.Report { return &e.Eval },
	})
}

// validate measures the model after an epoch on the held-out part of the training data.
func (r *run) validate(ctx context.Context, epoch int) error {
	return r.measure(ctx, epoch, heldOut{
		name: report.ValidationData, kind: "validation", options: r.data.ValidationOptions(), rows: &r.state.ValidationRows,
		of: func(e *report.Epoch) **metrics.Report { return &e.Validation },
	})
}

// heldOut is data that are not trained on.
type heldOut struct {
	name    string
	kind    string // kind of the lines in the metrics report
	options reader.Options
	rows    *report.Reading                      // set after the first epoch
	of      func(*report.Epoch) **metrics.Report // where the report belongs
}

// measure measures the model after an epoch, unless an interrupted process has already done so and
// was then stopped in the evaluation on other data.
func (r *run) measure(ctx context.Context, epoch int, data heldOut) error {
	if *data.of(r.state.OfEpoch(epoch)) != nil {
		return nil
	}
	r.reportBadRows(&data.options, epoch)
	rd, err := flow.OpenReader(ctx, data.options)
	if err != nil {
		return fmt.Errorf("%s: %w", data.name, err)
	}
	defer rd.Close()
	r.opts.Status.Begin(report.PhaseEvaluating, epoch, r.job.Training.Epochs, rd, r.table.Table)
	defer r.opts.Status.End()
	ev := inference.Runner{Stages: r.stages(), Status: r.opts.Status, Shift: metrics.LogitShift(r.job.Data.NegativeSampling)}
	measured, err := ev.Measure(ctx, rd, r.job.Data.GroupBy != "")
	if epoch == 1 {
		*data.rows = report.ReadingOf(rd.Counts())
	}
	if err != nil {
		return fmt.Errorf("evaluating: %w", err)
	}
	if err := r.readingEnded(); err != nil {
		return err
	}
	*data.of(r.state.OfEpoch(epoch)) = &measured
	r.log.Info("evaluated", "on", data.name, "epoch", epoch, "examples", measured.Examples, "log_loss", metrics.Rounded(measured.LogLoss), "auc", metrics.Rounded(measured.AUC))
	return r.reports.Metrics(data.kind, epoch, r.state.Engine.Step, r.state.Examples, measured)
}
