package trainer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aibox/configs"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// training.warm_start: latest stands for the newest model of an earlier run in the chain
// of a job: in output.model_dir and, if that has a date in it, in the directories that it
// names at earlier dates. In a directory it is the published model or, if that is of the
// same night as the job or of a later one, the model from which it was made, and so on:
// so a night that is trained again starts from the model that it started from before, and
// no data are trained twice. A job without a date starts from the published model.

// chosen is a model that training.warm_start: latest may stand for.
type chosen struct {
	name       string // for modeldir.Open
	generation string
	identity   string
	night      string // "": it has none
}

// latest finds the model to start from. The result is nil, without an error, if training
// begins with a new model, as it does in the first night.
func (r *run) latest() (*chosen, error) {
	best, blocked, err := r.latestIn(r.job.Output.ModelDir)
	if err != nil {
		return nil, err
	}
	there := make(listings)
	tried := make(map[string]bool)
	for dir, night := range r.job.EarlierModelDirs() {
		if best != nil && (best.night == "" || !modeldir.LaterNight(night, best.night)) {
			break // a directory that was last written at such a night has no newer model
		}
		if tried[dir] || !there.have(dir) {
			continue
		}
		tried[dir] = true
		c, cause, err := r.latestIn(dir)
		if err != nil {
			return nil, err
		}
		if blocked == nil {
			blocked = cause
		}
		if c != nil && (best == nil || modeldir.LaterNight(c.night, best.night)) {
			best = c
		}
	}
	if best == nil {
		return nil, blocked
	}
	return best, nil
}

// latestIn chooses a model of the directory dir. If it has models, but none that the job
// may start from, blocked is a *startGoneError; it is nil if the first of them began as a new
// model, so that the job may do so, too.
func (r *run) latestIn(dir string) (best *chosen, blocked, err error) {
	all, err := modeldir.Generations(dir)
	if errors.Is(err, modeldir.ErrNoModel) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	made := modeldir.Lineage(all)
	if len(made) == 0 {
		_, err := modeldir.Open(dir) // says what is wrong
		return nil, nil, fmt.Errorf("%w; it has complete generations: `aibox rollback %s --to N` publishes one of them", err, dir)
	}
	if night := made[0].Manifest.OfNight(); r.job.Dated && !r.job.DateGiven && modeldir.LaterNight(night, r.job.Night()) {
		return nil, nil, optionErrorf("%s is of the night %s, and by the clock of this machine the job is of the earlier night %s: is the clock right, and %s the right time zone? To train that night all the same, which publishes its model, give its date: --date %[3]s",
			filepath.Join(dir, made[0].Name), night, r.job.Night(), r.job.Timezone)
	}
	for _, g := range made {
		if !r.mayStartFrom(&g.Manifest) {
			if night, at := g.Manifest.OfNight(), filepath.Join(dir, g.Name); g.Published && modeldir.LaterNight(night, r.job.Night()) && r.overtakes != at { // else it has said so
				r.overtakes = at
				r.log.Warn("a night is trained again, and a later one is published: the model of this one takes its place, and the next night starts from it", "night", r.job.Night(), "published", g.Name, "published_night", night)
			}
			continue
		}
		c := &chosen{name: dir, generation: g.Name, identity: g.Manifest.Identity(), night: g.Manifest.OfNight()}
		if !g.Published {
			c.name = modeldir.JoinName(dir, g.Number)
		}
		return c, nil, nil
	}
	first := &made[len(made)-1].Manifest
	if first.StartedFrom == (modeldir.Origin{}) && first.SavedAt != "" {
		return nil, nil, nil
	}
	return nil, &startGoneError{dir: dir, first: first, job: r.job.Night()}, nil
}

// mayStartFrom reports whether the model is of an earlier run than the job: its night is
// not later, and it was not trained on the same data in the same night.
func (r *run) mayStartFrom(m *modeldir.Manifest) bool {
	night := m.OfNight()
	if !r.job.Dated || night == "" {
		return true // jobDay compares how days are counted
	}
	if modeldir.LaterNight(night, r.job.Night()) {
		return false
	}
	sameNight := !modeldir.LaterNight(r.job.Night(), night)
	return !sameNight || m.TrainData != "" && m.TrainData != trainDataHash(r.job)
}

// daysBetween is the number of days from the night a to the night b.
func daysBetween(a, b string) int {
	var days [2]time.Time
	for i, night := range []string{a, b} {
		day, err := time.Parse(time.DateOnly, night[:min(len(night), len(time.DateOnly))])
		if err != nil {
			return 0
		}
		days[i] = day
	}
	return int(days[1].Sub(days[0]).Hours() / 24)
}

// trainDataHash identifies the training data of a job by their URIs.
func trainDataHash(job *configs.Job) string {
	sum := sha256.Sum256([]byte(strings.Join(job.Data.Train, "\n")))
	return hex.EncodeToString(sum[:])
}

// openPrevious opens the model that training starts from, if there is one.
func (r *run) openPrevious(ctx context.Context) error {
	name := r.job.Training.WarmStart
	if name == configs.WarmStartLatest {
		c, err := r.latest()
		if err == nil && c == nil && !r.hasChain() {
			var restored bool
			if restored, err = r.restoreLatest(ctx); restored {
				c, err = r.latest()
			}
		}
		if err == nil && c != nil {
			var restored bool
			if restored, err = r.wholePrevious(ctx, c); restored {
				c, err = r.latest()
			}
		}
		var gone *startGoneError
		if errors.As(err, &gone) {
			if err = r.startElsewhere(ctx, gone); errors.As(err, &gone) && ctx.Err() == nil && !r.opts.Fresh {
				err = r.alreadyMade(err)
			}
		}
		if err != nil {
			return fmt.Errorf("training.warm_start: latest: %w", err)
		}
		if r.models.previous != nil { // restored for this run
			return nil
		}
		if c == nil {
			r.log.Info("training.warm_start: latest: there is no model of an earlier run, so training begins with a new one", "model_dir", r.job.Output.ModelDir, "dates_before", r.job.ModelDirHasDate())
			return nil
		}
		name = c.name
		attrs := []any{"model", name, "generation", c.generation}
		if c.night != "" {
			attrs = append(attrs, "night", c.night)
			if missing := daysBetween(c.night, r.job.Night()) - 1; missing > 0 {
				attrs = append(attrs, "missing_nights", missing)
			}
		}
		r.log.Info("training.warm_start: latest", attrs...)
	}
	if name == "" {
		return nil
	}
	p, err := modeldir.Open(name)
	if err != nil {
		return fmt.Errorf("training.warm_start: %w", err)
	}
	r.start = r.startAt(p.Dir, &p.Manifest)
	if r.job.Training.WarmStart != configs.WarmStartLatest {
		if p, err = r.wholeNamed(ctx, p); err != nil {
			return fmt.Errorf("training.warm_start: %w", err)
		}
	}
	r.models.previous = p
	if !modeldir.SameDir(p.Dir, r.job.Output.ModelDir) { // else the run itself brings what lacks
		return transfer.Complete(ctx, p, r.data.sources, int64(r.job.Output.RemoteBytesPerSecond), r.log)
	}
	return nil
}

// hasChain reports whether output.model_dir has any model. Where a night is trained again
// that made the first model, it does, though no earlier run has made one.
func (r *run) hasChain() bool {
	_, err := modeldir.Generations(r.job.Output.ModelDir)
	return !errors.Is(err, modeldir.ErrNoModel)
}

// checkPrevious fails if the newest model is another one by now than that which
// openPrevious has opened: another run has committed a model before this one had the lock
// of the model directory.
func (r *run) checkPrevious() error {
	if r.job.Training.WarmStart != configs.WarmStartLatest {
		return nil
	}
	c, err := r.latest()
	var gone *startGoneError
	if errors.As(err, &gone) && r.models.gone != nil && gone.first.StartedFrom == r.models.gone.first.StartedFrom {
		return nil // as openPrevious has found
	}
	if err != nil {
		return err
	}
	p := r.models.previous
	if c == nil && p == nil || c != nil && p != nil && c.identity == p.Identity() {
		return nil
	}
	return fmt.Errorf("training.warm_start: latest: %w: another run has written the newest model meanwhile; start again", modeldir.ErrLocked)
}

// origin says in a manifest what the model was made from and of which night it is.
func (r *run) origin(m *modeldir.Manifest) {
	m.SavedAt = time.Now().UTC().Format(time.RFC3339)
	m.Job, m.Night, m.TrainData = r.job.PlainName(), r.job.Night(), trainDataHash(r.job)
	m.NightDir, m.Inputs = r.job.ModelDirHasDate(), r.inputsHash()
	if r.start != nil {
		m.StartedFrom = r.start.Origin
	}
	m.PartialRecovery = r.partialRecovery()
}

// listings are the names in directories, of which each is read once: most directories
// that a template names do not exist.
type listings map[string]map[string]bool

// have reports whether path exists.
func (l listings) have(path string) bool {
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	if parent == path {
		return true
	}
	names, known := l[parent]
	if !known {
		names = make(map[string]bool)
		if l.have(parent) {
			entries, err := os.ReadDir(parent)
			for _, e := range entries {
				names[e.Name()] = true
			}
			if errors.Is(err, os.ErrPermission) {
				names = nil
			}
		}
		l[parent] = names
	}
	if names == nil { // it cannot be listed, and may have path all the same
		_, err := os.Stat(path)
		return err == nil
	}
	return names[filepath.Base(path)]
}
