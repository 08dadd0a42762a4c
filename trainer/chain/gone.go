package chain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// GoneError says that the job may not start from any model of a directory, and that the model from
// which the first of them was made is not on this machine.
type GoneError struct {
	Dir   string
	First *modeldir.Manifest // in dir
	job   string             // the night of the job
	why   string             // further reason; may be empty
}

func (e *GoneError) Error() string {
	from := e.First.StartedFrom
	origin := "the model that it started from"
	if from != (modeldir.Origin{}) {
		origin = fmt.Sprintf("%s, from which it was made,", filepath.Join(cmp.Or(from.ModelDir, e.Dir), from.Generation))
	}
	return fmt.Sprintf("%s is of the night %s, so the job, which is of %s, cannot start from it, and %s no longer exists%s; name the model to start from in training.warm_start, or set it to \"\" to begin with a new model",
		filepath.Join(e.Dir, e.First.Generation), e.First.OfNight(), e.job, origin, e.why)
}

// wasHere reports whether the missing model was in the same directory.
func (e *GoneError) wasHere() bool {
	return e.First.StartedFrom.ModelDir == "" && e.First.StartedFrom != (modeldir.Origin{})
}

// And returns e with a further reason.
func (e *GoneError) And(why string) error {
	return &GoneError{e.Dir, e.First, e.job, ", " + why}
}

// ErrorKind says that the job file has to change.
func (e *GoneError) ErrorKind() errkind.Kind { return errkind.Job }

// OriginIn follows the chain from child back through the models of a remote directory, all, to the
// first that the job may start from, and returns the origin by which its successor names it. The
// origin is zero if the chain begins with a new model. ok is false if models are missing.
func (ch *Chain) OriginIn(all []*remote.Manifest, child *modeldir.Manifest) (origin modeldir.Origin, ok bool) {
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
		if ch.MayStartFrom(&m) {
			return origin, true
		}
		if origin = transfer.MovedOrigin(m, all[i]).StartedFrom; origin == (modeldir.Origin{}) {
			return origin, m.SavedAt != ""
		}
	}
	return origin, false
}
