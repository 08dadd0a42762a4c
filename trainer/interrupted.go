package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/runstate"
)

// identify sets r.identity, which identifies the run in its snapshots.
func (r *run) identify() error {
	id, err := runstate.IdentityOf(r.job, r.models.Start, &r.data)
	if err == nil {
		r.identity, err = json.Marshal(id)
	}
	return err
}

// interrupted returns what an interrupted run left, if this run can resume it. If it cannot, the
// result is nil, and the log says why, at the latest when the files of that run are deleted.
func (r *run) interrupted() (data []byte, x *runstate.Record, id *runstate.Identity, err error) {
	data, err = modeldir.Interrupted(r.job.Output.ModelDir)
	var damage *modeldir.CorruptionError
	switch {
	case errors.As(err, &damage):
		r.log.Warn("the snapshot of an interrupted run is damaged; training starts over", "error", err)
		return nil, nil, nil, nil
	case err != nil || data == nil:
		return nil, nil, nil, err
	}
	if r.opts.Fresh {
		r.doesNotContinue(slog.LevelInfo, "training starts over, as --fresh says; the snapshot of an interrupted run is deleted")
		return nil, nil, nil, nil
	}
	if !r.snapshots.pace.On() {
		r.doesNotContinue(slog.LevelWarn, "snapshots.every is none: training starts over, and the snapshot of an interrupted run is deleted")
		return nil, nil, nil, nil
	}
	if x, id, err = runstate.Decode(data); err != nil {
		r.otherFormat(x, err)
		return nil, nil, nil, nil
	}
	reasons, err := id.Differences(r.job, r.models.Chain, r.data.Files)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(reasons) > 0 {
		r.doesNotContinue(slog.LevelWarn, "an earlier run that made no model cannot be continued, since this job differs from it; training starts over, and the snapshot of that run is deleted", "differences", strings.Join(reasons, "; "))
		return nil, nil, nil, nil
	}
	return data, x, id, nil
}

// otherFormat logs why a run does not resume from a snapshot of another version of aibox.
func (r *run) otherFormat(x *runstate.Record, err error) {
	r.log.Warn("the snapshot of an interrupted run has the format of another version of aibox; training starts over", "version", x.Version, "error", err)
}

// doesNotContinue defers a log message, which says why an interrupted run is not continued, until
// that run's snapshot is deleted. Until then this run may still fail, for example because another
// run has locked the directory.
func (r *run) doesNotContinue(level slog.Level, msg string, args ...any) {
	r.models.startsOver = func() { r.log.Log(context.Background(), level, msg, args...) }
}

// store returns the store of snapshots.remote.
func (r *run) store() *remotesnapshots.Store {
	return &remotesnapshots.Store{
		Job: r.job, Sources: r.data.Sources, Version: r.opts.Version, Log: r.log,
		Differences: func(id *runstate.Identity) ([]string, error) {
			return id.Differences(r.job, r.models.Chain, r.data.Files)
		},
	}
}

// resume resumes an interrupted run, if there is one, and reports whether it did.
func (r *run) resume(ctx context.Context) (bool, error) {
	data, x, id, err := r.interrupted()
	if err != nil || x == nil {
		return false, err
	}
	r.table.day, r.table.converted = x.Day, x.Converted
	if err := r.openData(ctx); err != nil {
		return false, err
	}
	err = r.goOn(ctx, data, x, id)
	var lost *modeldir.LostError
	var gone *remote.DamagedError
	if errors.As(err, &lost) { // perhaps for a moment only
		r.log.Warn("the table of an interrupted run cannot be opened; this is tried once more", "error", err)
		if err := r.suspend(); err != nil {
			return false, err
		}
		err = r.goOn(ctx, data, x, id)
	}
	switch {
	case err == nil:
		r.recovered(r.snapshotSource(), x.Place())
		return true, nil
	case errors.As(err, &lost):
		// If the model directory fails, too, nothing is known to be lost.
		if e := r.models.writer.SaveResume(data); e != nil {
			return false, errors.Join(err, e)
		}
		// Then the remaining files are not complete.
		incomplete := r.arriving.Arriving != nil || modeldir.InterruptedArrives(r.job.Output.ModelDir)
		if err := r.suspend(); err != nil {
			return false, err
		}
		if !incomplete && !r.refilled { // else what is left after that cannot be used either
			if done, err := r.partially(ctx, data, x, id, lost); err != nil {
				return false, err
			} else if done {
				return r.resume(ctx)
			}
		}
		r.lostTable(lost, x)
		return false, nil
	case errors.Is(err, errkind.ErrNewer):
		r.otherFormat(x, err)
		return false, r.giveUp()
	case !modeldir.Damaged(err) && !errors.As(err, &gone):
		return false, err
	}
	if r.arriving.Arriving != nil {
		r.arriving.DamagedID = r.arriving.ID()
	}
	if r.loss != nil {
		r.loss.snapshots = true
	}
	r.log.Warn("the snapshot of an interrupted run is damaged; training starts over, unless snapshots.remote has one", "error", err)
	if err := r.giveUp(); err != nil {
		r.log.Warn("the files of an interrupted run could not be deleted; the next run tries again", "error", err)
	}
	return false, nil
}

// fetchesSnapshots reports whether the run resumes from a snapshot of snapshots.remote, if there is
// one.
func (r *run) fetchesSnapshots() bool {
	return r.job.Snapshots.Remote != "" && r.snapshots.pace.On() && !r.opts.Fresh
}

// fetchSnapshot brings the newest snapshot of this job from snapshots.remote to this machine, in
// the form that an interrupted run leaves, and reports whether there is one.
func (r *run) fetchSnapshot(ctx context.Context) (bool, error) {
	if !r.fetchesSnapshots() {
		return false, nil
	}
	before := remotesnapshots.Before{DamagedID: r.arriving.DamagedID, Models: func() bool {
		c, _ := r.models.Chain.Latest() // whoever starts from it says what is wrong
		return c != nil || r.models.Chain.Exists()
	}}
	if l := r.loss; l != nil {
		before.Lost, before.Uploaded, before.RemainingFiles = true, l.uploaded, l.remainingFiles
	}
	fetched, err := r.store().Fetch(ctx, before)
	if err != nil || fetched == nil {
		return false, err
	}
	r.arriving.Restored = *fetched
	return true, nil
}
