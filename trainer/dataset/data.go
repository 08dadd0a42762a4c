package dataset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/report"
)

// Data are the data of a run.
type Data struct {
	Files
	Sources    *source.Sources
	Statistics *reader.Statistics
	Split      *reader.Split // of the training data into a part to train on and a held-out part; nil if nothing is held out
	Quarantine *Quarantine   // nil if it is not open

	job    *configs.Job
	status *report.Status
	log    *slog.Logger
	base   reader.Options // for every reading of the data
}

// New returns the data of a job, of which nothing is read yet. status gets the phases of the run.
func New(job *configs.Job, status *report.Status, log *slog.Logger) Data {
	return Data{Sources: jobsource.New(job, log), job: job, status: status, log: log}
}

// List lists the files. If the files for both training and evaluation are missing, the error names
// both.
func (d *Data) List(ctx context.Context) error {
	var missing, err error
	if d.Train, missing = d.list(ctx, "data.train", d.job.Data.Train); missing != nil && !errors.Is(missing, source.ErrNotFound) {
		return missing
	}
	d.Eval, err = d.list(ctx, "data.eval", d.job.Data.Eval)
	for _, text := range d.Warnings() {
		d.log.Warn(text)
	}
	return errors.Join(missing, err)
}

func (d *Data) list(ctx context.Context, key string, uris []string) (*source.Listing, error) {
	if len(uris) == 0 {
		return nil, nil
	}
	l, err := d.Sources.List(ctx, uris)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	d.log.Info("input listed", "key", key, "files", len(l.Files), "bytes", l.Bytes())
	return l, nil
}

// SetSchema sets the columns of the data.
func (d *Data) SetSchema(s reader.Schema) {
	d.base = jobparts.ReaderOptions(d.job, d.Sources, s, d.log)
}

// Check opens the training and evaluation data once, so that a wrong path or header, or evaluation
// data without an example, is found now and not after hours.
func (d *Data) Check(ctx context.Context) error {
	if len(d.job.Data.Eval) > 0 {
		if err := d.checkEval(ctx); err != nil {
			return fmt.Errorf("data.eval: %w", err)
		}
	}
	o := d.TrainOptions(0, 0)
	o.Schema = jobparts.WithoutStatistics(o.Schema)
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("data.train: %w", err)
	}
	return rd.Close()
}

// checkEval looks for the first good example of the evaluation data. The evaluation itself decides
// whether there are too many bad rows, or too much is lost.
func (d *Data) checkEval(ctx context.Context) error {
	o := jobparts.Unjudged(d.EvalOptions())
	o.URIs, o.Limit = d.job.Data.Eval, 1
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return err
	}
	if _, err := rd.Next(ctx); errors.Is(err, reader.ErrNoExamples) {
		return errors.Join(err, rd.Close())
	}
	return rd.Close()
}

// TrainOptions returns the reader's options for the training data in the given epoch, counted from
// 0, with at most limit examples (0 for all).
func (d *Data) TrainOptions(epoch int, limit int64) reader.Options {
	o := jobparts.TrainReaderOptions(d.base, d.job, epoch, limit)
	o.Listing, o.Split = d.Train, d.Split
	return o
}

// EvalOptions returns the reader's options for the evaluation data.
func (d *Data) EvalOptions() reader.Options {
	o := d.base
	o.Listing = d.Eval
	return o
}

// ValidationOptions returns the reader's options for the held-out part of the training data.
func (d *Data) ValidationOptions() reader.Options {
	o := d.base
	o.Listing, o.Split, o.Part = d.Train, d.Split, reader.Tail
	return o
}

// HoldOut finds where the held-out part of the training data begins, if the job has one.
func (d *Data) HoldOut(ctx context.Context) error {
	share := d.job.Data.ValidationFraction
	if share == 0 {
		return nil
	}
	d.status.Begin(report.PhaseScanning, 0, 0, nil, nil)
	o := d.TrainOptions(0, d.job.Data.Limit)
	o.Schema = jobparts.WithoutStatistics(o.Schema)
	split, err := reader.SplitTail(ctx, o, share)
	if err != nil {
		return fmt.Errorf("counting the rows of data.train: %w", err)
	}
	if split.Head == 0 || split.Head == split.Rows {
		return errkind.Errorf(errkind.Usage, "data.validation_fraction is %g, but data.train have %d examples, so that nothing would be left to train on or to hold out", share, split.Rows)
	}
	d.Split = split
	d.log.Info("held out for validation", "examples", split.Rows-split.Head, "of", split.Rows)
	return nil
}
