package trainer

import (
	"context"
	"errors"
	"fmt"

	"aibox/configs"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/transfer"
)

// Loaded is a trained model ready to evaluate and predict, read from its model
// directory alone.
type Loaded struct {
	Job   *configs.Job // as trained, with overrides
	Saved *modeldir.Model

	opts    Options
	sources *source.Sources
	schema  reader.Schema
	table   sparsetable.Table
	model   *model.Model
	engine  engine.Engine
	decay   *decay.Timeline   // of rows; nil: they do not decay
	reading *transfer.Reading // nil: the model is whole

	passLimit flow.Limit
}

// Load opens the model directory dir. change.Set overrides values of the job that the
// model was trained with, as --set does; settings that define the model, such as its
// columns and layers, cannot be changed.
func Load(ctx context.Context, dir string, change configs.LoadOptions, opts Options) (*Loaded, error) {
	opts.ensureDefaults()
	saved, err := modeldir.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &Loaded{Saved: saved, opts: opts}
	if err := l.load(ctx, change); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Loaded) load(ctx context.Context, change configs.LoadOptions) (err error) {
	if l.Job, l.schema, err = modeltable.SavedJob(l.Saved, change); err != nil {
		return err
	}
	kernel.SetThreads(l.Job.Pipeline.ComputeThreads)
	spec, err := jobparts.ModelSpec(l.Job, &l.schema)
	if err != nil {
		return err
	}
	if l.model, err = model.New(spec); err != nil {
		return err
	}
	if err := loadTensors(networkTensors(l.model), l.Saved.Dense); err != nil {
		return l.mismatch(change.Set, err)
	}
	if err := l.checkOverrides(change, spec); err != nil {
		return err
	}
	if l.reading, err = transfer.Read(l.Saved, l.Job, l.opts.Logger); err != nil {
		return err
	}
	o := jobparts.TableOptions(l.Job)
	o.Logger = l.opts.Logger
	if l.table, err = l.Saved.OpenTable(ctx, o); err != nil {
		return err
	}
	if have := l.table.Layout(); have.ValueDim != spec.RowDim() || have.Format.String() != l.Job.SparseTable.ValueFormat {
		return l.mismatch(change.Set, fmt.Errorf("its table has %d %v values per row, but the job has %d %s", have.ValueDim, have.Format, spec.RowDim(), l.Job.SparseTable.ValueFormat))
	}
	if l.decay, err = modeltable.RowDecay(l.Saved); err != nil {
		return err
	}
	precision, err := engine.ParsePrecision(l.Job.Engine.Precision)
	if err != nil {
		return &OptionError{fmt.Errorf("engine.precision: %w", err)}
	}
	if precision == engine.TF32 {
		precision = engine.Float32 // the processors of the host have no tf32
	}
	e, err := cpu.New(engine.Config{
		Network: l.model.Network(), Precision: precision, Layout: l.table.Layout(), MinOccurrences: l.Job.SparseTable.Admission.MinOccurrences,
	}, &engine.State{Step: l.Saved.Step, Decay: l.decay})
	if err != nil {
		return err
	}
	l.engine = e
	l.sources = jobsource.New(l.Job, l.opts.Logger)
	return nil
}

// mismatch is the error if the files of a model do not match its job: either overrides
// have turned the job into that of another model, or the files are damaged.
func (l *Loaded) mismatch(set []string, err error) error {
	if len(set) > 0 {
		return &OptionError{fmt.Errorf("model in %s: %w; settings that define the model cannot be overridden", l.Saved.Name, err)}
	}
	return &modeldir.CorruptionError{File: l.Saved.Name, Offset: -1, Reason: err.Error()}
}

// Close frees the table and the clients, if there are any.
func (l *Loaded) Close() error {
	var errs []error
	if l.table != nil {
		errs = append(errs, l.table.Close())
	}
	if l.sources != nil {
		errs = append(errs, l.sources.Close())
	}
	return errors.Join(append(errs, l.reading.Close(), l.Saved.Close())...)
}

// Evaluation is what `aibox eval` reports.
type Evaluation struct {
	ModelDir  string         `json:"model_dir"`
	Digest    string         `json:"digest,omitempty"` // if the model has it recorded
	Precision string         `json:"precision"`        // of matrix products: that of training, unless overridden
	Data      []string       `json:"data"`
	Rows      ReadingSummary `json:"input_rows"`
	Metrics   metrics.Report `json:"metrics"`
}

// Evaluate measures the model on labelled data.
func (l *Loaded) Evaluate(ctx context.Context, uris []string) (*Evaluation, error) {
	out := &Evaluation{ModelDir: l.Saved.Name, Digest: l.Saved.Digest, Precision: l.Job.Engine.Precision, Data: uris}
	data, err := l.sources.List(ctx, uris)
	if err != nil {
		return nil, err
	}
	rep, rows, err := l.read(ctx, PhaseEvaluating, data, passThrough{}, nil)
	if err != nil {
		return nil, err
	}
	out.Metrics, out.Rows = rep, rows
	return out, nil
}

// read runs the model over data; if each is set, the data need no labels.
func (l *Loaded) read(ctx context.Context, phase Phase, data *source.Listing, pass passThrough, each func(*reader.Batch, []float32) error) (metrics.Report, ReadingSummary, error) {
	o := jobparts.ReaderOptions(l.Job, l.sources, l.schema, l.opts.Logger)
	o.Listing, o.PassThrough, o.KeepLists, o.KeepUnlabelled = data, pass.columns, pass.keepLists, each != nil
	switch o.KeepBadRows = pass.keepBad; {
	case pass.keepBad: // every bad row is kept, however many there are
		o.MaxBadRows, o.MaxBadFraction = -1, -1
	case each != nil:
		o.MaxBadRows, o.MaxLostFraction = 0, 0
	}
	o.PlainLists = !pass.keepBad // else the row has a prediction, and its list is written as it is
	rd, err := flow.OpenReader(ctx, o)
	if err != nil {
		return metrics.Report{}, ReadingSummary{}, err
	}
	defer rd.Close()
	l.opts.Status.begin(phase, 0, 0, rd, l.table)
	defer l.opts.Status.end()
	ev := evaluation{
		Stages: flow.Stages{Table: l.table, Limit: &l.passLimit, Engine: l.engine, Queues: flow.QueuesOf(l.Job), Bytes: new(flow.Gauge), Log: l.opts.Logger},
		status: l.opts.Status, shift: logShare(l.Saved.KeptShare), each: each,
	}
	rep, err := ev.run(ctx, rd, each == nil, o.GroupBy != "")
	return rep, readingSummary(rd.Counts()), err
}
