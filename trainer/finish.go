package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// arrived waits, at the end of training, until all files of the table are there.
func (r *run) arrived(ctx context.Context) error {
	r.opts.Status.Begin(report.PhaseSaving, 0, r.job.Training.Epochs, nil, nil)
	return r.arriving.Whole(ctx)
}

// finish completes the model and commits it.
func (r *run) finish(ctx context.Context) error {
	if err := r.arrived(ctx); err != nil {
		return err
	}
	if r.final == nil {
		r.snapshots.wait()
		r.snapshots.uploads.Stop() // the model is published soon, or another process resumes from what is there
		if err := r.complete(ctx); err != nil {
			return err
		}
	}
	return r.commit()
}

// complete goes back to the best epoch if there is one, expires rows, and saves all files of the
// model but the manifest. A model that is worse than none stays as a snapshot.
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
	expired, err := r.expire(ctx)
	if err != nil {
		return err
	}
	m, err := r.manifest(ctx, &state)
	if err != nil {
		return err
	}
	if m.TableSnapshot, err = r.saveModel(ctx, state.Step); err != nil {
		return err
	}
	r.final = &runstate.Final{Manifest: m, Table: r.table.Stats(), Expired: expired}
	// The snapshots of training are dropped now, so another process would resume with the commit.
	// If this record cannot be saved, another process would resume from the snapshot before, which
	// is deleted only if it takes the space that the model needs.
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
	r.final.Table = r.table.Stats() // the files that only the snapshots of training had are deleted
	return nil
}

// expire deletes the rows that the job does not want to keep, and returns their number.
func (r *run) expire(ctx context.Context) (expired int64, err error) {
	e := r.job.SparseTable.Expiry
	rule := sparsetable.ExpiryRule{
		Today: r.table.day, UnseenDays: e.UnseenDays, MinShow: float32(e.MinShow), ShowDecay: float32(r.job.SparseTable.ShowDecay),
	}
	err = r.withSpace(func() error {
		n, err := r.table.Expire(ctx, rule)
		expired += n
		return err
	})
	return expired, err
}

// manifest describes the model of a state, except for the snapshot of its table.
func (r *run) manifest(ctx context.Context, state *runstate.Kept) (*modeldir.Manifest, error) {
	m := &modeldir.Manifest{
		AiboxVersion: r.opts.Version, Dense: modeldir.DenseName(state.Step),
		Epoch: state.Epoch, Step: state.Step, Examples: state.Examples,
		Day: r.table.day, DayFromDate: r.job.Dated, KeptShare: r.job.Data.NegativeSampling,
		RowDecay: r.state.Engine.Decay.Record(),
	}
	r.origin(m)
	if r.job.SparseTable.Kind == sparsetable.KindSSD { // a digest would need to read the whole table
		return m, nil
	}
	statistics, err := r.data.StatisticsFile()
	if err != nil {
		return nil, err
	}
	table, err := sparsetable.Digest(ctx, r.table.Table)
	if err != nil {
		return nil, err
	}
	m.Digest = modeldir.Digest(m.Step, m.KeptShare, statistics, r.tensors(state.Step), m.RowDecay.Digest(table))
	return m, nil
}

// origin records in a manifest what the model was made from, and its night.
func (r *run) origin(m *modeldir.Manifest) {
	m.SavedAt = time.Now().UTC().Format(time.RFC3339)
	m.Job, m.Night, m.TrainData = r.job.PlainName(), r.job.Night(), chain.TrainDataHash(r.job)
	m.NightDir, m.Inputs = r.job.ModelDirHasDate(), r.data.Hash()
	m.PartialRecovery = report.PartialRecovery(r.recoveries)
	if r.models.Start != nil {
		m.StartedFrom, m.PartialRecovery.Inherited = r.models.Start.Origin, r.models.Start.Inexact
	}
}

// commit makes the final model the published model of the directory.
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
	// The table is closed, too, so that others can open it as soon as the model is committed.
	r.closeTable()
	m := r.final.Manifest
	r.summarize(m, r.final.Table, r.final.Expired)
	if err := r.summary.Write(r.models.writer.Report(report.SummaryName)); err != nil {
		return err
	}
	if p := r.models.Previous; p != nil {
		if err := p.Close(); err != nil { // Commit may delete it, and the run has read all that it needs of it
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
