package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"time"

	"aibox/configs"
	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/optim"
)

// Options are what a job file does not say.
type Options struct {
	Logger  *slog.Logger // nil: slog.Default()
	Status  *Status      // nil: nobody watches
	Version string       // of the binary, recorded with the model
}

func (o *Options) ensureDefaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Status == nil {
		o.Status = new(Status)
	}
}

// Train runs job and commits its model to job.Output.ModelDir. When it fails
// or ctx is cancelled, the directory's earlier model, if any, stays.
func Train(ctx context.Context, job *configs.Job, opts Options) (*Summary, error) {
	opts.ensureDefaults()
	kernel.SetThreads(job.Pipeline.ComputeThreads)
	r := &run{job: job, opts: opts, log: opts.Logger, started: time.Now()}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.epochs(ctx); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// run is one run of a training job.
type run struct {
	job     *configs.Job
	opts    Options
	log     *slog.Logger
	started time.Time

	sources    *source.Sources
	schema     reader.Schema
	base       reader.Options // for every reading of the data
	statistics *reader.Statistics
	previous   *modeldir.Model // warm start; nil without
	writer     *modeldir.Writer
	quarantine *os.File
	reports    *reports

	spec     model.Spec
	model    *model.Model
	dense    *optim.Dense
	rowInit  func(key uint64, row []float32)
	layout   sparsetable.Layout
	table    sparsetable.Table
	engine   *engine
	day      uint32
	examples int64 // trained in this run

	best    *kept // with early stopping: the best epoch so far
	last    kept
	summary Summary
}

// kept is the state of training after an epoch. With early stopping the table
// snapshot and the dense file exist on disk.
type kept struct {
	epoch    int
	step     int64
	examples int64
	eval     *metrics.Report // nil without evaluation data
	snapshot uint64
}

// prepare opens everything that can fail for reasons the user can mend, before
// any training: data (also for evaluation), earlier model, model directory.
func (r *run) prepare(ctx context.Context) error {
	r.opts.Status.begin(PhaseStarting, 0, r.job.Training.Epochs, nil, nil)
	var err error
	if r.schema, err = Schema(r.job); err != nil {
		return err
	}
	r.sources = NewSources(r.job, r.log)
	if r.job.Training.WarmStart != "" {
		if r.previous, err = modeldir.Open(r.job.Training.WarmStart); err != nil {
			return fmt.Errorf("training.warm_start: %w", err)
		}
	}
	if r.day, err = r.jobDay(); err != nil {
		return err
	}
	r.base = readerOptions(r.job, r.sources, r.schema, r.log)
	if err := r.checkData(ctx); err != nil {
		return err
	}
	if r.writer, err = modeldir.Create(r.job.Output.ModelDir); err != nil {
		return err
	}
	if r.quarantine, err = os.Create(r.writer.Report(quarantineName)); err != nil {
		return fmt.Errorf("quarantine file: %w", err)
	}
	if err := r.scan(ctx); err != nil {
		return err
	}
	if r.reports, err = openReports(r.job, r.writer); err != nil {
		return err
	}
	return r.build(ctx)
}

// jobDay is the day that rows of this run are stamped with.
func (r *run) jobDay() (uint32, error) {
	fromDate := r.job.Dated
	if p := r.previous; p != nil && p.DayFromDate != fromDate && r.agesRows() {
		return 0, optionErrorf("training.warm_start: the earlier model counted days %s, this job counts them %s, so show_decay and expiry would be wrong; give both a date (--date, or {{date}} in a path) or neither",
			dayOrigin(p.DayFromDate), dayOrigin(fromDate))
	}
	switch {
	case fromDate:
		day := r.job.Date.Unix() / (24 * 60 * 60)
		if day < 1 || day > math.MaxUint32 {
			return 0, optionErrorf("the job's date %s: want a day after 1970-01-01", r.job.Date.Format(time.DateOnly))
		}
		if p := r.previous; p != nil && p.DayFromDate && uint32(day) < p.Day {
			return 0, optionErrorf("training.warm_start: the earlier model is of %s, after this job's date %s",
				time.Unix(int64(p.Day)*24*60*60, 0).UTC().Format(time.DateOnly), r.job.Date.Format(time.DateOnly))
		}
		return uint32(day), nil
	case r.previous != nil && !r.previous.DayFromDate:
		return r.previous.Day + 1, nil
	default:
		return 1, nil
	}
}

func (r *run) agesRows() bool {
	t := r.job.SparseTable
	return t.ShowDecay != 1 || t.Expiry.UnseenDays > 0 || t.Expiry.MinShow > 0
}

func dayOrigin(fromDate bool) string {
	if fromDate {
		return "by date"
	}
	return "by runs (no date)"
}

// checkData opens the training and the evaluation data once, so that a wrong
// path or header shows now and not after hours.
func (r *run) checkData(ctx context.Context) error {
	open := func(what string, o reader.Options) error {
		o.Schema = withoutStatistics(o.Schema)
		rd, err := reader.Open(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return rd.Close()
	}
	if len(r.job.Data.Eval) > 0 {
		o := r.base
		o.URIs = r.job.Data.Eval
		if err := open("data.eval", o); err != nil {
			return err
		}
	}
	return open("data.train", trainReaderOptions(r.base, r.job, 0, 0))
}

// build makes model, optimizers, table and engine, from the earlier model if
// there is one.
func (r *run) build(ctx context.Context) error {
	job := r.job
	var err error
	if r.spec, err = modelSpec(job, &r.schema); err != nil {
		return err
	}
	if r.model, err = model.New(r.spec); err != nil {
		return err
	}
	if r.dense, err = optim.NewDense(denseConfig(job.Optimizer.Dense), r.model.Params()); err != nil {
		return err
	}
	rows, err := optim.NewRows(rowConfig(job.Optimizer.Rows), r.spec.RowDim())
	if err != nil {
		return err
	}
	schedule, err := optim.NewSchedule(scheduleConfig(job.Optimizer.Schedule))
	if err != nil {
		return err
	}
	r.layout = sparsetable.Layout{ValueDim: r.spec.RowDim(), StateDim: rows.StateDim()}
	initValues := optim.NewInit(job.Seed, *job.SparseTable.InitStddev)
	layout := r.layout
	r.rowInit = func(key uint64, row []float32) {
		initValues(key, layout.Values(row))
		rows.Init(layout.Values(row), layout.State(row))
	}
	if err := r.openTable(ctx, 0); err != nil {
		return err
	}
	r.engine = &engine{
		model: r.model, dense: r.dense, rows: rows, schedule: schedule, layout: r.layout,
		fields: len(r.spec.Fields), day: r.day, showDecay: float32(job.SparseTable.ShowDecay),
		minOccurrences: job.SparseTable.Admission.MinOccurrences,
	}
	if r.previous != nil {
		return r.warmStart(ctx)
	}
	return nil
}

// openTable opens the run's table: empty, or at a snapshot of this run.
func (r *run) openTable(ctx context.Context, snapshot uint64) error {
	t, err := sparsetable.Open(ctx, sparsetable.Options{
		Kind: r.job.SparseTable.Kind, Dir: r.writer.TableDir(),
		SnapshotID: snapshot, MustExist: snapshot != 0,
		Layout: r.layout, Init: r.rowInit, MemoryBytes: int64(r.job.SparseTable.MemoryBytes), Logger: r.log,
	})
	if err != nil {
		return fmt.Errorf("sparse_table: %w", err)
	}
	r.table = t
	return nil
}

// tensors are the dense parameters, buffers and optimizer state of now. They
// share memory with the model.
func (r *run) tensors() []modeldir.Tensor {
	var out []modeldir.Tensor
	for _, p := range r.model.Params() {
		out = append(out, modeldir.Tensor{Name: paramPrefix + p.Name, Shape: p.Shape, Data: p.Data})
	}
	for _, p := range r.model.Buffers() {
		out = append(out, modeldir.Tensor{Name: bufferPrefix + p.Name, Shape: p.Shape, Data: p.Data})
	}
	for _, s := range r.dense.State() {
		out = append(out, modeldir.Tensor{Name: optimizerPrefix + s.Name, Shape: []int{len(s.Data)}, Data: s.Data})
	}
	return out
}

// Prefixes of tensor names in the dense file.
const (
	paramPrefix     = "param/"
	bufferPrefix    = "buffer/"
	optimizerPrefix = "optimizer/"
)

// epochs trains until the epochs, the examples or the patience are used up.
func (r *run) epochs(ctx context.Context) error {
	t := r.job.Training
	stop := newStopping(t.EarlyStopping)
	for epoch := 1; epoch <= t.Epochs; epoch++ {
		limit := r.job.Data.Limit
		if t.MaxExamples > 0 {
			left := t.MaxExamples - r.examples
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
		r.last = kept{epoch: epoch, step: r.engine.step, examples: r.examples}
		if len(r.job.Data.Eval) > 0 {
			report, err := r.evaluate(ctx, epoch)
			if err != nil {
				return err
			}
			r.last.eval = &report
		}
		if t.EarlyStopping == nil {
			continue
		}
		best, enough, err := stop.epoch(r.last.eval)
		if err != nil {
			return err
		}
		if best {
			if err := r.keepBest(ctx); err != nil {
				return err
			}
		}
		if enough {
			r.log.Info("early stopping", "epoch", epoch, "best_epoch", r.best.epoch, "metric", t.EarlyStopping.Metric)
			break
		}
	}
	return nil
}

// keepBest saves the present state as the best so far.
func (r *run) keepBest(ctx context.Context) error {
	if err := r.writer.SaveDense(modeldir.DenseName(r.last.step), r.tensors()); err != nil {
		return err
	}
	id, err := r.snapshot(ctx, r.last.step)
	if err != nil {
		return err
	}
	if r.best != nil {
		r.writer.RemoveDense(modeldir.DenseName(r.best.step))
		if err := r.table.DropSnapshot(r.best.snapshot); err != nil {
			return err
		}
	}
	best := r.last
	best.snapshot = id
	r.best = &best
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
	return info.ID, nil
}

// reportBadRows lets the first epoch say which rows are bad: later ones meet the same.
func (r *run) reportBadRows(o *reader.Options, epoch int) {
	if epoch == 1 {
		o.Quarantine = r.quarantine
	} else {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// trainEpoch reads the training data once.
func (r *run) trainEpoch(ctx context.Context, epoch int, limit int64) error {
	o := trainReaderOptions(r.base, r.job, epoch-1, limit)
	r.reportBadRows(&o, epoch)
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("data.train: %w", err)
	}
	defer rd.Close()
	status := r.opts.Status
	status.begin(PhaseTraining, epoch, r.job.Training.Epochs, rd, r.table)
	status.limit(limit)
	defer status.end()
	online := newOnline(r, epoch)
	f := flow{
		reader: rd, table: r.table, mode: sparsetable.PullCreate,
		readQueue: r.job.Pipeline.ReadQueue, pullQueue: r.job.Pipeline.PullQueue,
		started: status.pipeline,
		batch: func(rows *sparsetable.WorkingSet, b *reader.Batch) error {
			res, err := r.engine.train(rows, b)
			if err != nil {
				return err
			}
			r.examples += int64(b.N)
			status.batch(r.engine.step, b.N)
			return online.add(b, res)
		},
		passDone: func(p *reader.Pass) { status.bytes(p.Bytes) },
	}
	start := time.Now()
	stages, err := f.run(ctx)
	if epoch == 1 {
		r.summary.TrainRows = readingSummary(rd.Counts())
	}
	if err != nil {
		return err
	}
	report, err := online.end()
	if err != nil {
		return err
	}
	r.summary.addEpoch(epoch, report, stages, time.Since(start))
	r.log.Info("epoch trained", "epoch", epoch, "examples", report.Examples, "log_loss", rounded(report.LogLoss),
		"auc", rounded(report.AUC), "seconds", math.Round(10*time.Since(start).Seconds())/10)
	return nil
}

// evaluate measures the model on data.eval after an epoch.
func (r *run) evaluate(ctx context.Context, epoch int) (metrics.Report, error) {
	o := r.base
	o.URIs = r.job.Data.Eval
	r.reportBadRows(&o, epoch)
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return metrics.Report{}, fmt.Errorf("data.eval: %w", err)
	}
	defer rd.Close()
	r.opts.Status.begin(PhaseEvaluating, epoch, r.job.Training.Epochs, rd, r.table)
	defer r.opts.Status.end()
	ev := evaluation{
		engine: r.engine, table: r.table, status: r.opts.Status, shift: logShare(r.job.Data.NegativeSampling),
		readQueue: r.job.Pipeline.ReadQueue, pullQueue: r.job.Pipeline.PullQueue,
	}
	report, err := ev.run(ctx, rd, true, r.job.Data.GroupBy != "")
	if epoch == 1 {
		r.summary.EvalRows = readingSummary(rd.Counts())
	}
	if err != nil {
		return report, fmt.Errorf("evaluating: %w", err)
	}
	r.summary.addEvaluation(epoch, report)
	r.log.Info("evaluated", "epoch", epoch, "examples", report.Examples, "log_loss", rounded(report.LogLoss), "auc", rounded(report.AUC))
	return report, r.reports.evaluation(epoch, r.engine.step, report)
}

// rounded is a figure as people want to read it in a log.
func rounded(v metrics.Value) string {
	if !v.Defined() {
		return "undefined"
	}
	return strconv.FormatFloat(float64(v), 'f', 5, 64)
}

// logShare is the shift of logits that undoes negative down-sampling: keeping
// a share s of the negatives multiplies the odds by 1/s.
func logShare(share float64) float32 { return kernel.Log(float32(share)) }

// finish goes back to the best epoch if there is one, expires rows, and
// commits the model.
func (r *run) finish(ctx context.Context) (*Summary, error) {
	status := r.opts.Status
	status.begin(PhaseSaving, 0, r.job.Training.Epochs, nil, nil)
	state := r.last
	if r.best != nil && r.best.epoch != r.last.epoch {
		if err := r.restore(ctx, r.best); err != nil {
			return nil, fmt.Errorf("going back to epoch %d: %w", r.best.epoch, err)
		}
		state = *r.best
	}
	e := r.job.SparseTable.Expiry
	expired, err := r.table.Expire(ctx, sparsetable.ExpiryRule{
		Today: r.day, UnseenDays: e.UnseenDays, MinShow: float32(e.MinShow), ShowDecay: float32(r.job.SparseTable.ShowDecay),
	})
	if err != nil {
		return nil, err
	}
	tableDigest, err := sparsetable.Digest(ctx, r.table)
	if err != nil {
		return nil, err
	}
	statistics, err := json.MarshalIndent(r.statistics, "", "  ")
	if err != nil {
		return nil, err
	}
	dense := r.tensors()
	m := &modeldir.Manifest{
		AiboxVersion: r.opts.Version, Dense: modeldir.DenseName(state.step),
		Epoch: state.epoch, Step: state.step, Examples: state.examples,
		Day: r.day, DayFromDate: r.job.Dated, KeptShare: r.job.Data.NegativeSampling,
		Digest: modeldir.Digest(state.step, r.job.Data.NegativeSampling, statistics, dense, tableDigest),
	}
	if err := r.writer.SaveDense(m.Dense, dense); err != nil {
		return nil, err
	}
	if m.TableSnapshot, err = r.snapshot(ctx, state.step); err != nil {
		return nil, err
	}
	if r.best != nil {
		if err := r.table.DropSnapshot(r.best.snapshot); err != nil {
			return nil, err
		}
	}
	var job bytes.Buffer
	if err := r.job.Show(&job); err != nil {
		return nil, err
	}
	// Reports first: once the model is committed, all that belongs to it is there.
	if err := errors.Join(r.reports.close(), r.quarantine.Close()); err != nil {
		return nil, err
	}
	if err := r.writer.Commit(m, job.Bytes(), statistics); err != nil {
		return nil, err
	}
	r.summary.complete(r, m, expired)
	for _, w := range r.summary.Warnings {
		r.log.Warn(w)
	}
	return &r.summary, r.summary.write(r.job.Output.ModelDir)
}

// restore replaces model and table by the state kept for an earlier epoch.
func (r *run) restore(ctx context.Context, k *kept) error {
	if err := r.table.Close(); err != nil {
		return err
	}
	r.table = nil
	if err := r.openTable(ctx, k.snapshot); err != nil {
		return err
	}
	saved, err := r.writer.ReadDense(modeldir.DenseName(k.step))
	if err != nil {
		return err
	}
	return loadTensors(r.tensors(), saved)
}

// loadTensors copies saved into tensors of the same names and sizes.
func loadTensors(into, saved []modeldir.Tensor) error {
	byName := make(map[string]modeldir.Tensor, len(saved))
	for _, t := range saved {
		byName[t.Name] = t
	}
	for _, t := range into {
		s, ok := byName[t.Name]
		if !ok || len(s.Data) != len(t.Data) {
			return fmt.Errorf("dense file: tensor %s is missing or of another size", t.Name)
		}
		copy(t.Data, s.Data)
	}
	return nil
}

// close frees what is still open; after a failure it removes the generation.
func (r *run) close() {
	r.opts.Status.end()
	if r.reports != nil {
		_ = r.reports.close() // after success closed already
	}
	if r.quarantine != nil {
		_ = r.quarantine.Close()
		if r.summary.Digest == "" { // no model was made
			if path, err := r.writer.KeepReport(quarantineName, failedQuarantineName); err == nil && path != "" {
				r.log.Info("bad rows of this run", "file", path)
			}
		}
	}
	if r.table != nil {
		if err := r.table.Close(); err != nil {
			r.log.Warn("closing the table", "error", err)
		}
	}
	if r.writer != nil {
		if err := r.writer.Close(); err != nil {
			r.log.Warn("closing the model directory", "error", err)
		}
	}
	if r.sources != nil {
		if err := r.sources.Close(); err != nil {
			r.log.Warn("closing sources", "error", err)
		}
	}
}
