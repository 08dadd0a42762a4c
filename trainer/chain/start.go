package chain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/trainer/modeldir"
)

// Start is the model that a run has started from. A run that resumes after an interruption does not
// read it again: the model may have been deleted meanwhile.
type Start struct {
	modeldir.Origin
	Name    string `json:"name"` // DIR@N
	SavedAt string `json:"saved_at,omitempty"`
	Inexact bool   `json:"inexact,omitempty"` // the model is not that of undisturbed runs
}

// StartAt returns the model with the given manifest, in dir, as a Start.
func (ch *Chain) StartAt(dir string, m *modeldir.Manifest) *Start {
	s := &Start{Origin: modeldir.Origin{Generation: m.Generation, Identity: m.Identity()}, Name: modeldir.JoinName(dir, m.Number()), SavedAt: m.SavedAt, Inexact: m.PartialRecovery != (modeldir.PartialRecovery{})}
	if !disk.SameDir(dir, ch.job.Output.ModelDir) {
		s.ModelDir = disk.RealDir(dir)
	}
	return s
}

// OtherStart returns a reason not to resume the run that has started from before (nil if it started
// from a new model): training would start from another model if it started over. That is so if
// somebody has published another model since, by a rollback or by training an earlier night that
// was missing. Resuming would then leave out data from the chain of models, or keep data that were
// to be undone. It is no reason if the other model is only what is left after the run's start was
// deleted. Nor is it one if the models cannot be read, for example because a disk has failed: a
// resumed run does not need them, and the log has a warning.
func (ch *Chain) OtherStart(before *Start) string {
	now := ch.presentStart()
	if now == nil || before != nil && now.same(before) {
		return ""
	}
	from := "a new model"
	if before != nil {
		if !ch.has(before) && !now.newer(before) {
			return ""
		}
		from = before.Name
	}
	return fmt.Sprintf("training.warm_start: it now means %s, but the interrupted run started from %s", now.Name, from)
}

// presentStart returns the model that a run would start from now; nil if that is a new one or
// cannot be found.
func (ch *Chain) presentStart() *Start {
	name := ch.job.Training.WarmStart
	if name == configs.WarmStartLatest {
		c, err := ch.Latest()
		if err != nil && !errors.As(err, new(*GoneError)) {
			ch.warnUnknown(err)
		}
		if err != nil || c == nil {
			return nil
		}
		name = c.Name
	}
	if name == "" {
		return nil
	}
	dir, number := modeldir.SplitName(name)
	for _, g := range ch.generations(dir) {
		if g.Fault == nil && (g.Number == number || number == 0 && g.Published) {
			return ch.StartAt(dir, &g.Manifest)
		}
	}
	return nil
}

// generations returns those of dir, which may have been deleted.
func (ch *Chain) generations(dir string) []modeldir.Generation {
	all, err := modeldir.Generations(dir)
	if err != nil && !errors.Is(err, modeldir.ErrNoModel) {
		ch.warnUnknown(err)
	}
	return all
}

func (ch *Chain) warnUnknown(err error) {
	ch.log.Warn("it is not known whether training.warm_start names another model now than when the interrupted run began; if so, the run would have to start over; it resumes", "error", err)
}

// same reports whether s and other are the same model, in whatever directory.
func (s *Start) same(other *Start) bool {
	if s.Identity == "" || other.Identity == "" { // an earlier version saved it
		return s.ModelDir == other.ModelDir && s.Generation == other.Generation && s.SavedAt == other.SavedAt
	}
	return s.Identity == other.Identity
}

// has reports whether the model s still exists. A model with a damaged manifest does: a rollback does
// not delete the model that it leaves.
func (ch *Chain) has(s *Start) bool {
	for _, dir := range slices.Compact([]string{cmp.Or(s.ModelDir, ch.job.Output.ModelDir), ch.job.Output.ModelDir}) {
		for _, g := range ch.generations(dir) {
			if g.Fault != nil {
				g.Manifest = modeldir.Manifest{Generation: g.Name}
				if at := ch.StartAt(dir, &g.Manifest); at.ModelDir == s.ModelDir && at.Generation == s.Generation {
					return true
				}
			} else if ch.StartAt(dir, &g.Manifest).same(s) {
				return true
			}
		}
	}
	return false
}

// newer reports whether s was saved after other. Numbers decide only if times do not: a restored
// model may have any number.
func (s *Start) newer(other *Start) bool {
	if s.SavedAt != other.SavedAt && s.SavedAt != "" && other.SavedAt != "" {
		return s.SavedAt > other.SavedAt
	}
	return s.ModelDir == other.ModelDir && s.number() > other.number()
}

func (s *Start) number() int {
	m := modeldir.Manifest{Generation: s.Generation}
	return m.Number()
}
