package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/densefile"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/tensorfile"
)

// tensors are those of the dense file after step t. They share memory with the model.
func (r *run) tensors(t int64) []tensorfile.Tensor {
	return densefile.Trained(r.model, &r.state.Engine, r.Rows, t)
}

// finish completes the model and commits it.
func (r *run) finish(ctx context.Context) error {
	r.opts.Status.Begin(report.PhaseSaving, 0, r.job.Training.Epochs, nil, nil)
	if err := r.arriving.Whole(ctx); err != nil {
		return err
	}
	if r.final == nil {
		r.snapshots.wait()
		r.snapshots.uploads.Stop() // the model is published soon, or another process goes on from what is there
		if err := r.complete(ctx); err != nil {
			return err
		}
	}
	return r.commit()
}

// complete goes back to the best epoch if there is one, expires rows, and saves all files
// of the model but the manifest. A model that is worse than none stays as a snapshot.
func (r *run) complete(ctx context.Context) error {
	state := *r.state.Last
	goBack := r.state.Best != nil && r.state.Best.Epoch != r.state.Last.Epoch
	if goBack {
		state = *r.state.Best
	}
	if err := r.checkLearned(&state); err != nil {
		r.snapshots.keep()
		return err
	}
	r.midway = true
	if goBack {
		if err := r.restore(ctx, r.state.Best); err != nil {
			return fmt.Errorf("going back to epoch %d: %w", r.state.Best.Epoch, err)
		}
	}
	e := r.job.SparseTable.Expiry
	rule := sparsetable.ExpiryRule{
		Today: r.table.day, UnseenDays: e.UnseenDays, MinShow: float32(e.MinShow), ShowDecay: float32(r.job.SparseTable.ShowDecay),
	}
	expired := int64(0)
	err := r.withSpace(func() error {
		n, err := r.table.Expire(ctx, rule)
		expired += n
		return err
	})
	if err != nil {
		return err
	}
	statistics, err := r.data.StatisticsFile()
	if err != nil {
		return err
	}
	m := &modeldir.Manifest{
		AiboxVersion: r.opts.Version, Dense: modeldir.DenseName(state.Step),
		Epoch: state.Epoch, Step: state.Step, Examples: state.Examples,
		Day: r.table.day, DayFromDate: r.job.Dated, KeptShare: r.job.Data.NegativeSampling,
		RowDecay: r.state.Engine.Decay.Record(),
	}
	r.origin(m)
	if r.job.SparseTable.Kind != sparsetable.KindSSD { // the digest of a table on SSD would need a read of the whole table
		table, err := sparsetable.Digest(ctx, r.table.Table)
		if err != nil {
			return err
		}
		m.Digest = modeldir.Digest(m.Step, m.KeptShare, statistics, r.tensors(state.Step), m.RowDecay.Digest(table))
	}
	if m.TableSnapshot, err = r.saveModel(ctx, state.Step); err != nil {
		return err
	}
	r.final = &runstate.Final{Manifest: m, Table: r.table.Stats(), Expired: expired}
	// Those of training are dropped now. So from here on, another process goes on with the
	// commit. If that cannot be saved, another process goes on from the snapshot before,
	// unless it takes the space that the model needs.
	saved := false
	if r.snapshots.saved != nil {
		err := r.snapshots.saveExisting(m.TableSnapshot, r.final)
		if saved = err == nil; !saved && !diskFull(err) {
			return err
		}
	}
	if !saved {
		r.snapshots.forget(&runstate.Record{Snapshot: m.TableSnapshot, Step: m.Step})
	}
	r.final.Table = r.table.Stats() // the files that only those of training had are deleted
	return nil
}

// origin says in a manifest what the model was made from and of which night it is.
func (r *run) origin(m *modeldir.Manifest) {
	m.SavedAt = time.Now().UTC().Format(time.RFC3339)
	m.Job, m.Night, m.TrainData = r.job.PlainName(), r.job.Night(), chain.TrainDataHash(r.job)
	m.NightDir, m.Inputs = r.job.ModelDirHasDate(), r.data.Hash()
	m.PartialRecovery = report.PartialRecovery(r.recoveries)
	if r.models.Start != nil {
		m.StartedFrom, m.PartialRecovery.Inherited = r.models.Start.Origin, r.models.Start.Inexact
	}
}

// commit makes the files of the final model the model of the directory.
func (r *run) commit() error {
	if err := r.checkTable(nil); err != nil {
		return err
	}
	var job bytes.Buffer
	if err := r.asked.Show(&job); err != nil {
		return err
	}
	statistics, err := r.data.StatisticsFile()
	if err != nil {
		return err
	}
	// The reports are closed first, so that they are complete once the model is
	// committed.
	if err := errors.Join(r.reports.Close(), r.data.Quarantine.Close()); err != nil {
		return err
	}
	// The table is closed too, so that others can open it as soon as the model is
	// committed.
	r.closeTable()
	m := r.final.Manifest
	r.summarize(m, r.final.Table, r.final.Expired)
	if err := r.summary.Write(r.models.writer.Report(report.SummaryName)); err != nil {
		return err
	}
	if p := r.models.Previous; p != nil {
		if err := p.Close(); err != nil { // Commit may delete it; all of it that the run needs is read
			return err
		}
	}
	if err := r.models.writer.Commit(m, job.Bytes(), statistics); err != nil {
		return err
	}
	r.logLeftovers()
	r.forgetFailures()
	for _, w := range r.summary.Warnings {
		r.log.Warn(w)
	}
	return nil
}

// restore replaces model and table by the state kept for an earlier epoch.
func (r *run) restore(ctx context.Context, k *runstate.Kept) error {
	if err := r.table.Close(); err != nil {
		return err
	}
	r.table.Table = nil
	if err := r.openTable(ctx, k.Snapshot); err != nil {
		return err
	}
	saved, err := r.models.writer.ReadDense(modeldir.DenseName(k.Step))
	if err != nil {
		return err
	}
	if err := densefile.Load(r.tensors(k.Step), saved); err != nil {
		return err
	}
	return r.engine.Import()
}

// logLeftovers logs what was deleted of earlier runs, and which of their files could not be.
func (r *run) logLeftovers() {
	if says := r.models.startsOver; says != nil {
		r.models.startsOver = nil
		says()
	}
	for _, err := range r.models.writer.Leftovers() {
		r.log.Warn("files of an earlier run could not be deleted or replaced; the next run tries again", "error", err)
	}
}

// close frees what is still open, and returns failure, which may then be a
// *ResumableError. After a failure it removes the generation, unless another process can
// go on with it, and leaves reports that say why.
func (r *run) close(ctx context.Context, failure error) error {
	r.snapshots.wait()
	r.snapshots.uploads.Stop()
	status := r.opts.Status.View()
	r.opts.Status.End()
	if r.reports != nil {
		_ = r.reports.Close() // after success closed already
	}
	if r.data.Quarantine != nil {
		_ = r.data.Quarantine.Close() // after success closed already
	}
	if r.table.Table != nil {
		r.summary.Table = r.table.Stats()
	}
	if err := r.arriving.Close(); err != nil {
		r.log.Warn("closing the files that have not arrived", "error", err)
	}
	r.closeEngine()
	r.closeTable()
	if r.models.Previous != nil {
		_ = r.models.Previous.Close() // it was only read
		r.models.Remove()
	}
	made := r.models.writer != nil && r.models.writer.Committed() // the model is committed, and something failed afterwards
	others := errors.Is(failure, modeldir.ErrLocked)              // another run is using the directory
	if failure != nil && !made && !others {
		failure = r.resumable(ctx, failure)
		var again bool
		if again, failure = r.suspended(failure); !again {
			if err := r.reportFailure(ctx, failure, status); err != nil {
				r.log.Warn("the summary of this run could not be written", "error", err)
			}
		}
	}
	if r.models.writer != nil {
		if others && r.snapshots.saved != nil {
			r.models.writer.Suspend()
		}
		if err := r.models.writer.Close(); err != nil {
			r.log.Warn("closing the model directory", "error", err)
		}
	}
	if r.data.Sources != nil {
		if err := r.data.Sources.Close(); err != nil {
			r.log.Warn("closing sources", "error", err)
		}
	}
	return failure
}
