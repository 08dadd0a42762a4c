package trainer

import (
	"cmp"
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
	if !modeldir.SameDir(dir, r.job.Output.ModelDir) {
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
	if now == nil || before != nil && now.same(before) {
		return ""
	}
	from := "a new model"
	if before != nil {
		if !r.exists(before) && !now.newer(before) {
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

// same reports whether s and other are the same model, wherever they are.
func (s *start) same(other *start) bool {
	if s.Identity == "" || other.Identity == "" { // an earlier version saved it
		return s.ModelDir == other.ModelDir && s.Generation == other.Generation && s.SavedAt == other.SavedAt
	}
	return s.Identity == other.Identity
}

// exists reports whether the model that s is still exists.
func (r *run) exists(s *start) bool {
	for _, dir := range []string{cmp.Or(s.ModelDir, r.job.Output.ModelDir), r.job.Output.ModelDir} {
		all, _ := modeldir.Generations(dir) // it may be gone
		for i := range all {
			if g := r.startAt(dir, &all[i].Manifest); all[i].Fault == nil && g.same(s) {
				return true
			}
		}
	}
	return false
}

// newer reports whether s was saved after other. Numbers tell only where times do not: a model that
// was restored may have any.
func (s *start) newer(other *start) bool {
	if s.SavedAt != other.SavedAt && s.SavedAt != "" && other.SavedAt != "" {
		return s.SavedAt > other.SavedAt
	}
	return s.ModelDir == other.ModelDir && s.number() > other.number()
}

func (s *start) number() int {
	m := modeldir.Manifest{Generation: s.Generation}
	return m.Number()
}
