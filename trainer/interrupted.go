package trainer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/runstate"
)

// identify describes the run for its snapshots.
func (r *run) identify() error {
	var job bytes.Buffer
	if err := r.job.Show(&job); err != nil {
		return err
	}
	id := runstate.Identity{Job: job.String(), Night: r.job.Night(), Start: r.models.start, Train: r.data.train, Eval: r.data.eval, Statistics: r.data.statistics, Split: r.data.split}
	var err error
	r.identity, err = json.Marshal(id)
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
	reasons, err := r.differences(id)
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

// differences says in what this run differs from the one that id is of.
func (r *run) differences(id *runstate.Identity) (reasons []string, err error) {
	earlier, err := configs.Parse("the interrupted job", []byte(id.Job), configs.LoadOptions{Saved: true})
	if err != nil { // a key was renamed or removed since
		return []string{err.Error()}, nil
	}
	if reasons, err = r.jobDifferences(earlier); err != nil {
		return nil, err
	}
	if night := r.job.Night(); night != id.Night {
		reasons = append(reasons, fmt.Sprintf("the job's date (%s, was %s)", cmp.Or(night, "none"), cmp.Or(id.Night, "none")))
	}
	if len(reasons) > 0 {
		return reasons, nil // other data follow from that
	}
	if reason := r.models.chain.OtherStart(id.Start); reason != "" {
		reasons = append(reasons, reason)
	}
	for _, data := range []struct {
		key         string
		before, now *source.Listing
	}{{"data.train", id.Train, r.data.train}, {"data.eval", id.Eval, r.data.eval}} {
		if err := source.SameFiles(filesOf(data.before), filesOf(data.now)); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", data.key, err))
		}
	}
	return reasons, nil
}

// jobDifferences are the keys in which the job differs from an earlier one, except those on which the model
// does not depend.
func (r *run) jobDifferences(earlier *configs.Job) ([]string, error) {
	keys, err := r.job.Differences(earlier)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, mayDiffer)
	if len(r.job.Engine.Devices) == len(earlier.Engine.Devices) { // a model depends on how many there are
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "engine.devices" })
	}
	return keys, nil
}

// mayDiffer reports whether a run goes on where this key of the job file differs: nothing
// that was saved depends on it, and the model and the reports neither.
func mayDiffer(key string) bool {
	switch key {
	case "pipeline.batches_per_pass", "pipeline.chunk_bytes": // they say where a reading can start
		return false
	case "output.keep_generations", "sparse_table.memory_bytes", "sparse_table.dirs", "training.accept_diverged":
		return true
	}
	return strings.HasPrefix(key, "snapshots.") || strings.HasPrefix(key, "recovery.") || strings.HasPrefix(key, "pipeline.")
}

func filesOf(l *source.Listing) []source.File {
	if l == nil {
		return nil
	}
	return l.Files
}

// damaged reports whether the files of an interrupted run are damaged or incomplete, so
// that no process can go on with them. If a directory of its table is lost, one can.
func damaged(err error) bool {
	var table *sparsetable.CorruptionError
	var dir *modeldir.CorruptionError
	if errors.As(err, new(*modeldir.LostError)) {
		return false
	}
	return errors.As(err, &table) || errors.As(err, &dir) || errors.Is(err, sparsetable.ErrNoSnapshot)
}
