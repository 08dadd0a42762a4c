package trainer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// A night that is trained again starts from the model that it started from before. Where this
// machine does not have that any more, because a newer model was restored to it or because
// output.keep_generations is small, output.remote may: then it is restored for the run alone, and
// the model that is published stays published.

// startGoneError says that no model of a directory is one that the job may start from, and that
// the one from which the first of them was made is not on this machine.
type startGoneError struct {
	dir   string
	first *modeldir.Manifest // in dir
	job   string             // the night of the job
	why   string             // more of it; "": there is nothing
}

func (e *startGoneError) Error() string {
	from := e.first.StartedFrom
	origin := "the model that it started from"
	if from != (modeldir.Origin{}) {
		origin = fmt.Sprintf("%s, from which it was made,", filepath.Join(cmp.Or(from.ModelDir, e.dir), from.Generation))
	}
	return fmt.Sprintf("%s is of the night %s, so the job, which is of %s, cannot start from it, and %s is not there any more%s; name the model to start from in training.warm_start, or give an empty text to begin with a new model",
		filepath.Join(e.dir, e.first.Generation), e.first.OfNight(), e.job, origin, e.why)
}

// and is e with more of the reason.
func (e *startGoneError) and(why string) error {
	return &startGoneError{e.dir, e.first, e.job, ", " + why}
}

// ErrorKind says that the job file has to change.
func (e *startGoneError) ErrorKind() errkind.Kind { return errkind.Job }

// startElsewhere restores from output.remote, for this run alone, the model that gone says is
// missing, or the one that this one was made from, and so on: the first one that the job may start
// from. Where the chain begins there with a new model, r.models.previous stays nil.
func (r *run) startElsewhere(ctx context.Context, gone *startGoneError) error {
	uri := r.job.Output.Remote
	if uri == "" || gone.first.StartedFrom.Identity == "" {
		return gone
	}
	r.models.gone = gone
	d, err := transfer.OpenPresent(r.data.sources, uri, int64(r.job.Output.RemoteBytesPerSecond), "restoring", r.log)
	var all []*remote.Manifest
	if err == nil {
		all, _, err = d.Generations(ctx)
	}
	if err != nil {
		return errkind.As(errkind.IO, fmt.Errorf("%w; output.remote may have it, but cannot be read: %w", gone, err))
	}
	origin, ok := r.originIn(all, gone.first)
	if !ok {
		return gone.and("nor is it in " + uri)
	}
	if origin == (modeldir.Origin{}) {
		return nil
	}
	name := nameOf(gone.dir, origin)
	r.log.Info("training.warm_start: latest: the model to start from is not on this machine any more; it is restored from output.remote for this run", "model", name, "remote", uri)
	p, err := r.restoreStart(ctx, origin.Identity, nil)
	var damaged *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &damaged) {
		return gone.and(fmt.Sprintf("nor is it in %s as a whole: %v", uri, err))
	}
	if err != nil {
		return errkind.As(errkind.IO, fmt.Errorf("%w; restoring it from output.remote has failed: %w", gone, err))
	}
	r.start, r.models.previous = r.startAt(p.Dir, &p.Manifest), p
	r.start.Origin, r.start.Name = origin, name
	return nil
}

// originIn follows, among the models of a remote directory, the chain that leads to child, back to
// the first model that the job may start from, and returns what the one after it says of it; zero: the
// chain begins with a new model. ok is false if models are missing.
func (r *run) originIn(all []*remote.Manifest, child *modeldir.Manifest) (origin modeldir.Origin, ok bool) {
	origin = child.StartedFrom
	for range all {
		i := slices.IndexFunc(all, func(m *remote.Manifest) bool { return m.Identity == origin.Identity })
		if i < 0 {
			break
		}
		var m modeldir.Manifest
		if err := json.Unmarshal(all[i].Model, &m); err != nil {
			break
		}
		if r.mayStartFrom(&m) {
			return origin, true
		}
		if origin = transfer.MovedOrigin(m, all[i]).StartedFrom; origin == (modeldir.Origin{}) {
			return origin, m.SavedAt != ""
		}
	}
	return origin, false
}
