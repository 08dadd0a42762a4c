package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"aibox/trainer/dataset"
	"aibox/trainer/densefile"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// goOn takes over the generation of an interrupted run, and opens everything at its last snapshot.
func (r *run) goOn(ctx context.Context, data []byte, x *runstate.Record, id *runstate.Identity) error {
	w, err := r.takeOver(data)
	if err != nil {
		return err
	}
	r.models.writer = w
	if w.Resume() == nil {
		return r.usedMeanwhile()
	}
	r.models.Start, r.recoveries = id.Start, x.Recoveries
	r.trim()
	r.snapshots.saved = &image{Snapshot: remotesnapshots.Snapshot{Record: *x, Data: data}}
	r.snapshots.summary, r.earlier = x.Snapshots, x.Seconds
	r.data.Statistics, r.data.Split, r.final = id.Statistics, id.Split, x.Final
	if err := r.data.ApplyStatistics(&r.Schema); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := r.makeModel(); err != nil {
		return err
	}
	if err := r.state.Decode(x.State); err != nil {
		return err
	}
	r.state.Online, r.state.Reader = x.Online, x.Reader
	r.snapshots.saved.Record.Best = r.state.Best
	if x.Final != nil {
		r.snapshots.saved.Record.Best = nil
	}
	r.snapshots.saved.Quarantine = r.state.QuarantineBytes()
	r.snapshots.pace.GoOn(r.state.Examples)
	if err := r.takeReports(x); err != nil {
		return err
	}
	r.reports.Lost = report.LostSamples(r.recoveries)
	r.opts.Status.Lost(r.reports.Lost)
	if err := r.takeTable(ctx, x); err != nil {
		return err
	}
	if x.Final == nil {
		if err := r.takeDense(x); err != nil {
			return err
		}
	}
	here := x.Place()
	r.resumed = append(x.Resumed, here)
	r.arriving.Ready()
	r.log.Info("training resumes from the snapshot of an interrupted run", "epoch", here.Epoch, "step", here.Step, "trained_examples", here.Examples)
	if x.Version != r.opts.Version && x.Final == nil {
		r.log.Warn("another version of aibox saved the snapshot: if CHANGELOG.md says that the two make different bits, neither of them alone would make this model; --fresh trains it from the beginning", "saved_by", x.Version, "now", r.opts.Version)
	}
	return nil
}

// takeOver takes over the generation of the interrupted run whose record is data.
func (r *run) takeOver(data []byte) (*modeldir.Writer, error) {
	return modeldir.Continue(r.job.Output.ModelDir, func(now []byte) (bool, error) {
		if !bytes.Equal(now, data) {
			return false, r.usedMeanwhile()
		}
		return true, nil
	})
}

func (r *run) usedMeanwhile() error {
	return fmt.Errorf("model directory %s: %w: another run has used it meanwhile; try again", r.job.Output.ModelDir, modeldir.ErrLocked)
}

// takeReports opens the reports of the interrupted run and truncates them to their lengths at the
// snapshot.
func (r *run) takeReports(x *runstate.Record) (err error) {
	if r.data.Quarantine, err = dataset.OpenQuarantine(r.models.writer.Report(report.QuarantineName), 0); err != nil {
		return err
	}
	if err := r.data.Quarantine.Cut(r.state.QuarantineBytes()); err != nil {
		return err
	}
	at := x.Reports
	if path := r.job.Output.Metrics; path != "" && report.Staged(r.models.writer, r.job.Output.ModelDir, path) == path {
		others, size, err := report.LinesOfOthers(path, at.Metrics, x.Step)
		if err != nil {
			return fmt.Errorf("output.metrics: %w", err)
		}
		if others {
			r.log.Warn("output.metrics: other runs have written to the file since the snapshot, so lines of this run after it may be there twice", "file", path)
			at.Metrics = size
		}
	}
	r.reports, err = report.OpenWriter(r.job, r.models.writer, &at)
	return err
}

// takeTable opens the table at the snapshot and drops all other snapshots.
func (r *run) takeTable(ctx context.Context, x *runstate.Record) (err error) {
	if r.table.dirs, err = r.models.writer.TakeTable(); err != nil {
		return err
	}
	if err := r.arriving.Open(r.models.writer, r.table.dirs, r.models.Start); err != nil {
		return err
	}
	if err := r.openTableIn(ctx, r.placedTable(), x.Snapshot); err != nil {
		return modeldir.TableLost(r.table.dirs, err)
	}
	if err := r.checkSnapshot(x); err != nil {
		return err
	}
	r.dropOthers(&r.snapshots.saved.Record)
	return nil
}

// takeDense reads the dense tensors and makes the engine.
func (r *run) takeDense(x *runstate.Record) error {
	saved, err := r.models.writer.ReadDense(modeldir.DenseName(x.Step))
	if errors.Is(err, fs.ErrNotExist) {
		return r.models.writer.Incomplete(err)
	}
	if err != nil {
		return err
	}
	if err := densefile.Load(r.tensors(x.Step), saved); err != nil {
		return r.models.writer.Incomplete(err)
	}
	return r.makeEngine()
}

// checkSnapshot checks that the table's snapshot belongs to the same step as the rest.
func (r *run) checkSnapshot(x *runstate.Record) error {
	infos, err := r.table.Snapshots()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.ID == x.Snapshot && bytes.Equal(info.Record, x.TableRecord()) {
			return nil
		}
	}
	return r.models.writer.Incomplete(fmt.Errorf("snapshot %d of the table is not of step %d", x.Snapshot, x.Step))
}

// suspend closes what goOn has opened, and keeps the interrupted run's generation.
func (r *run) suspend() error {
	r.models.writer.Suspend()
	return r.giveUp()
}

// giveUp closes what goOn has opened and deletes the interrupted run's generation.
func (r *run) giveUp() error {
	var errs []error
	if r.reports != nil {
		errs = append(errs, r.reports.Close())
	}
	if r.data.Quarantine != nil {
		errs = append(errs, r.data.Quarantine.Close())
	}
	errs = append(errs, r.arriving.Close())
	r.closeEngine()
	r.closeTable()
	errs = append(errs, r.models.writer.Close())
	r.reports, r.data.Quarantine, r.models.writer, r.engine, r.table.dirs, r.final = nil, nil, nil, nil, nil, nil
	r.state, r.history, r.models.Start, r.snapshots = runstate.State{}, history{started: r.started, refilled: r.refilled}, nil, newSnapshots(r)
	r.arriving.Forget()
	var err error
	r.Parts, err = jobparts.Make(r.job) // without the statistics of that run
	return errors.Join(append(errs, err)...)
}
