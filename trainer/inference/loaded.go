package inference

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/densefile"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// Model is a trained model ready to evaluate and predict, read from its model
// directory alone.
type Model struct {
	Job     *configs.Job // as trained, with overrides
	Saved   *modeldir.Model
	Network *model.Model
	Table   sparsetable.Table // its rows are never changed

	opts      Options
	sources   *source.Sources
	schema    reader.Schema
	engine    engine.Engine
	precision engine.Precision
	decay     *decay.Timeline   // of rows; nil if they do not decay
	reading   *transfer.Reading // nil if the model is complete

	passLimit flow.Limit
}

// Options are the options of Load.
type Options struct {
	Logger *slog.Logger   // nil: slog.Default()
	Status *report.Status // kept up to date; may be nil
}

// Load opens the model directory dir. change.Set overrides values of the job that the model was
// trained with, as --set does. Settings that define the model, such as its columns and layers,
// cannot be changed.
func Load(ctx context.Context, dir string, change configs.LoadOptions, opts Options) (*Model, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Status == nil {
		opts.Status = new(report.Status)
	}
	saved, err := modeldir.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &Model{Saved: saved, opts: opts}
	if err := l.load(ctx, change); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Model) load(ctx context.Context, change configs.LoadOptions) (err error) {
	if l.Job, l.schema, err = modeltable.SavedJob(l.Saved, change); err != nil {
		return err
	}
	kernel.SetThreads(l.Job.Pipeline.ComputeThreads)
	spec, err := jobparts.ModelSpec(l.Job, &l.schema)
	if err != nil {
		return err
	}
	if l.Network, err = model.New(spec); err != nil {
		return err
	}
	if err := densefile.Load(densefile.Network(l.Network), l.Saved.Dense); err != nil {
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
	if l.Table, err = l.Saved.OpenTable(ctx, o); err != nil {
		return err
	}
	if have := l.Table.Layout(); have.ValueDim != spec.RowDim() || have.Format.String() != l.Job.SparseTable.ValueFormat {
		return l.mismatch(change.Set, fmt.Errorf("its table has %d %v values per row, but the job has %d %s", have.ValueDim, have.Format, spec.RowDim(), l.Job.SparseTable.ValueFormat))
	}
	if l.decay, err = modeltable.RowDecay(l.Saved); err != nil {
		return err
	}
	if l.precision, err = engine.ParsePrecision(l.Job.Engine.Precision); err != nil {
		return errkind.Errorf(errkind.Usage, "engine.precision: %w", err)
	}
	if l.precision == engine.TF32 {
		l.precision = engine.Float32 // the host's processors have no tf32
	}
	e, err := cpu.New(engine.Config{
		Network: l.Network.Network(), Precision: l.precision, Layout: l.Table.Layout(), MinOccurrences: l.Job.SparseTable.Admission.MinOccurrences,
	}, &engine.State{Step: l.Saved.Step, Decay: l.decay})
	if err != nil {
		return err
	}
	l.engine = e
	l.sources = jobsource.New(l.Job, l.opts.Logger)
	return nil
}

// mismatch returns the error of a model whose files do not match its job: either overrides have
// turned the job into that of another model, or the files are damaged.
func (l *Model) mismatch(set []string, err error) error {
	if len(set) > 0 {
		return errkind.Errorf(errkind.Usage, "model in %s: %w; settings that define the model cannot be overridden", l.Saved.Name, err)
	}
	return &modeldir.CorruptionError{File: l.Saved.Name, Offset: -1, Reason: err.Error()}
}

// Close frees the table and the clients, if there are any.
func (l *Model) Close() error {
	var errs []error
	if l.Table != nil {
		errs = append(errs, l.Table.Close())
	}
	if l.sources != nil {
		errs = append(errs, l.sources.Close())
	}
	return errors.Join(append(errs, l.reading.Close(), l.Saved.Close())...)
}

// Evaluation is what `aibox eval` reports.
type Evaluation struct {
	ModelDir  string         `json:"model_dir"`
	Digest    string         `json:"digest,omitempty"` // if the model records it
	Precision string         `json:"precision"`        // of matrix products: that of training, unless overridden; float32 for tf32
	Data      []string       `json:"data"`
	Rows      report.Reading `json:"input_rows"`
	Metrics   metrics.Report `json:"metrics"`
}

// Evaluate measures the model on labelled data.
func (l *Model) Evaluate(ctx context.Context, uris []string) (*Evaluation, error) {
	out := &Evaluation{ModelDir: l.Saved.Name, Digest: l.Saved.Digest, Precision: l.precision.String(), Data: uris}
	data, err := l.list(ctx, uris)
	if err != nil {
		return nil, err
	}
	rep, rows, err := l.read(ctx, report.PhaseEvaluating, data, passThrough{}, nil)
	if err != nil {
		return nil, err
	}
	out.Metrics, out.Rows = rep, rows
	return out, nil
}

func (l *Model) list(ctx context.Context, uris []string) (*source.Listing, error) {
	data, err := l.sources.List(ctx, uris)
	if text := data.WithoutBytes("the input"); text != "" {
		l.opts.Logger.Warn(text)
	}
	return data, err
}

// withoutWeights returns the schema without the weights of examples, on which predictions do not
// depend.
func withoutWeights(s reader.Schema) reader.Schema {
	s.Columns = slices.Clone(s.Columns)
	for i := range s.Columns {
		if s.Columns[i].Role == reader.RoleWeight {
			s.Columns[i].Role = reader.RoleIgnore
		}
	}
	return s
}

// read runs the model over data. If each is set, the data need neither labels, weights nor the
// column of groups.
func (l *Model) read(ctx context.Context, phase report.Phase, data *source.Listing, pass passThrough, each func(*reader.Batch, []float32) error) (metrics.Report, report.Reading, error) {
	o := jobparts.ReaderOptions(l.Job, l.sources, l.schema, l.opts.Logger)
	o.Listing, o.PassThrough, o.KeepLists, o.KeepUnlabelled = data, pass.columns, pass.keepLists, each != nil
	if each != nil {
		o.GroupBy, o.Schema = "", withoutWeights(o.Schema)
	}
	switch o.KeepBadRows = pass.keepBad; {
	case pass.keepBad: // every bad row is kept, however many there are
		o.MaxBadRows, o.MaxBadFraction = -1, -1
	case each != nil:
		o.MaxBadRows, o.MaxLostFraction = 0, 0
	}
	o.PlainLists = !pass.keepBad // else such a row has a prediction, and its list is written as it is
	rd, err := flow.OpenReader(ctx, o)
	if err != nil {
		return metrics.Report{}, report.Reading{}, err
	}
	defer rd.Close()
	l.opts.Status.Begin(phase, 0, 0, rd, l.Table)
	defer l.opts.Status.End()
	ev := Runner{
		Stages: flow.Stages{Table: l.Table, Limit: &l.passLimit, Engine: l.engine, Queues: flow.QueuesOf(l.Job), Bytes: new(flow.Gauge), Log: l.opts.Logger},
		Status: l.opts.Status, Shift: metrics.LogitShift(l.Saved.KeptShare), each: each,
	}
	rep, err := ev.run(ctx, rd, each == nil, o.GroupBy != "")
	return rep, report.ReadingOf(rd.Counts()), err
}
