package trainer

import (
	"fmt"

	"aibox/configs"
	"aibox/trainer/modeldir"
)

// start is the model that a run has started from. A run that goes on after an
// interruption does not read it again: the model may have been deleted meanwhile.
type start struct {
	modeldir.Origin
	Name    string `json:"name"` // DIR@N
	SavedAt string `json:"saved_at,omitempty"`
	Inexact bool   `json:"inexact,omitempty"` // it is not the model of undisturbed runs
}

// startAt is the model of the manifest, which is in dir, as a start.
func (r *run) startAt(dir string, m *modeldir.Manifest) *start {
	s := &start{Origin: modeldir.Origin{Generation: m.Generation, Identity: m.Identity()}, Name: modeldir.JoinName(dir, m.Number()), SavedAt: m.SavedAt, Inexact: m.PartialRecovery != (modeldir.PartialRecovery{})}
	if !sameDir(dir, r.job.Output.ModelDir) {
		s.ModelDir = modeldir.RealDir(dir)
	}
	return s
}

// otherStart says from which model training would start if it started over, if that is
// a reason not to go on with the run that has started from before (nil: from a new
// model). It is one if somebody published another model since: by a rollback, or by
// training an earlier night that was missing. Otherwise data would be missing in the
// chain of models, or be in it again that were to be undone. It is none if the other model
// is only what is left after that of the run was deleted.
func (r *run) otherStart(before *start) string {
	now := r.presentStart()
	if now == nil || before != nil && *now == *before {
		return ""
	}
	from := "a new model"
	if before != nil {
		if r.manifestOf(before) == nil && !now.newer(before) {
			return ""
		}
		from = before.Name
	}
	return fmt.Sprintf("training.warm_start: it means %s now, but the interrupted run has started from %s", now.Name, from)
}

// presentStart is the model that a run would start from now; nil: a new one, or it cannot
// start.
func (r *run) presentStart() *start {
	name := r.job.Training.WarmStart
	if name == configs.WarmStartLatest {
		c, err := r.latest()
		if err != nil || c == nil {
			return nil
		}
		name = c.name
	}
	if name == "" {
		return nil
	}
	dir, number := modeldir.SplitName(name)
	all, _ := modeldir.Generations(dir) // it may be gone
	for _, g := range all {
		if g.Fault == nil && (g.Number == number || number == 0 && g.Published) {
			return r.startAt(dir, &g.Manifest)
		}
	}
	return nil
}

// manifestOf is the manifest of the model that s is; nil if it does not exist any more.
func (r *run) manifestOf(s *start) *modeldir.Manifest {
	all, _ := modeldir.Generations(or(s.ModelDir, r.job.Output.ModelDir))
	for _, g := range all {
		if g.Name == s.Generation && g.Manifest.SavedAt == s.SavedAt {
			return &g.Manifest
		}
	}
	return nil
}

// newer reports whether s was saved after other.
func (s *start) newer(other *start) bool {
	if s.ModelDir == other.ModelDir && s.number() > other.number() {
		return true
	}
	return s.SavedAt > other.SavedAt
}

func (s *start) number() int {
	m := modeldir.Manifest{Generation: s.Generation}
	return m.Number()
}
