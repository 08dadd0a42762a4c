package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"aibox/trainer/modeldir"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/runstate"
)

// identify describes the run for its snapshots.
func (r *run) identify() error {
	id, err := runstate.IdentityOf(r.job, r.models.Start, &r.data)
	if err == nil {
		r.identity, err = json.Marshal(id)
	}
	return err
}

// interrupted returns what an interrupted run left, if this run can go on with it. If it
// cannot, the log says why, at the latest when what it left is deleted, and the result is nil.
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
	if !r.snapshots.on() {
		r.doesNotContinue(slog.LevelWarn, "snapshots.every is none: training starts over, and the snapshot of an interrupted run is deleted")
		return nil, nil, nil, nil
	}
	if x, id, err = runstate.Decode(data); err != nil {
		r.log.Warn("the snapshot of an interrupted run has the format of another version of aibox; training starts over", "version", x.Version, "error", err)
		return nil, nil, nil, nil
	}
	reasons, err := id.Differences(r.job, r.models.Chain, r.data.Files)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(reasons) > 0 {
		r.doesNotContinue(slog.LevelWarn, "an interrupted run cannot be continued, since this job differs from it; training starts over, and the snapshot of that run is deleted", "differences", strings.Join(reasons, "; "))
		return nil, nil, nil, nil
	}
	return data, x, id, nil
}

// doesNotContinue has the log say why an interrupted run is not continued once its snapshot is
// deleted: until then this run may still fail, as where another one has locked the directory.
func (r *run) doesNotContinue(level slog.Level, msg string, args ...any) {
	r.startsOver = func() { r.log.Log(context.Background(), level, msg, args...) }
}

// store is snapshots.remote.
func (r *run) store() *remotesnapshots.Store {
	return &remotesnapshots.Store{
		Job: r.job, Sources: r.data.Sources, Version: r.opts.Version, Log: r.log,
		Differences: func(id *runstate.Identity) ([]string, error) {
			return id.Differences(r.job, r.models.Chain, r.data.Files)
		},
	}
}
