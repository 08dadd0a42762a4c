package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
)

// Chain is the chain of models of one job, as seen from one run.
type Chain struct {
	job         *configs.Job
	log         *slog.Logger
	warnedLater string // the published model of a later night, if the log has warned of it
}

// New returns the chain of a job.
func New(job *configs.Job, log *slog.Logger) *Chain { return &Chain{job: job, log: log} }

// Choice is a model that training.warm_start: latest may stand for.
type Choice struct {
	Name       string // for modeldir.Open
	Generation string
	Identity   string
	Night      string // "" if it has none
}

// Latest finds the model to start from. It returns nil, without an error, if training begins with a
// new model, as in the first night.
func (ch *Chain) Latest() (*Choice, error) {
	best, blocked, err := ch.latestIn(ch.job.Output.ModelDir)
	if err != nil {
		return nil, err
	}
	var gone *GoneError
	if errors.As(blocked, &gone) && gone.wasHere() && ch.job.SharesModelDir() {
		return nil, blocked // models in earlier directories are older than the one that was here
	}
	there := make(listings)
	tried := make(map[string]bool)
	for dir, night := range ch.job.EarlierModelDirs() {
		if best != nil && (best.Night == "" || !modeldir.LaterNight(night, best.Night)) {
			break // a directory last written in that night has no newer model
		}
		if tried[dir] || !there.have(dir) {
			continue
		}
		tried[dir] = true
		c, cause, err := ch.latestIn(dir)
		if err != nil {
			return nil, err
		}
		if blocked == nil {
			blocked = cause
		}
		if c != nil && (best == nil || modeldir.LaterNight(c.Night, best.Night)) {
			best = c
		}
	}
	if best == nil {
		return nil, blocked
	}
	return best, nil
}

// latestIn chooses a model of the directory dir. If dir has models, but none that the job may start
// from, blocked is a *GoneError, unless the first of them began as a new model: then the job may
// begin with one, too.
func (ch *Chain) latestIn(dir string) (best *Choice, blocked, err error) {
	all, err := modeldir.Generations(dir)
	if errors.Is(err, modeldir.ErrNoModel) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	made := modeldir.Lineage(all)
	if len(made) == 0 {
		m, err := modeldir.Open(dir)
		if err != nil {
			return nil, nil, err // the error says what to do
		}
		_ = m.Close() // one was published meanwhile
		return ch.latestIn(dir)
	}
	if night := made[0].Manifest.OfNight(); ch.job.Dated && !ch.job.DateGiven && modeldir.LaterNight(night, ch.job.Night()) {
		return nil, nil, errkind.Errorf(errkind.Usage, "%s is of the night %s, and by the clock of this machine the job is of the earlier night %s: is the clock right, and %s the right time zone? To train that night all the same, which publishes its model, give its date: --date %[3]s",
			filepath.Join(dir, made[0].Name), night, ch.job.Night(), ch.job.Timezone)
	}
	for _, g := range made {
		if !ch.MayStartFrom(&g.Manifest) {
			if night, at := g.Manifest.OfNight(), filepath.Join(dir, g.Name); g.Published && modeldir.LaterNight(night, ch.job.Night()) && ch.warnedLater != at { // else it has been said
				ch.warnedLater = at
				ch.log.Warn("the published model is of a later night than this run: the model of this run replaces it, and the next night starts from that of this run", "night", ch.job.Night(), "published", g.Name, "published_night", night)
			}
			continue
		}
		c := &Choice{Name: dir, Generation: g.Name, Identity: g.Manifest.Identity(), Night: g.Manifest.OfNight()}
		if !g.Published {
			c.Name = modeldir.JoinName(dir, g.Number)
		}
		return c, nil, nil
	}
	first := &made[len(made)-1].Manifest
	if first.StartedFrom == (modeldir.Origin{}) && first.SavedAt != "" {
		return nil, nil, nil
	}
	return nil, &GoneError{Dir: dir, First: first, job: ch.job.Night()}, nil
}

// MayStartFrom reports whether the model is of an earlier run than the job: its night is not later,
// and it was not trained on the same data in the same night.
func (ch *Chain) MayStartFrom(m *modeldir.Manifest) bool {
	night := m.OfNight()
	if !ch.job.Dated || night == "" {
		return true // package start compares how days are counted
	}
	if modeldir.LaterNight(night, ch.job.Night()) {
		return false
	}
	sameNight := !modeldir.LaterNight(ch.job.Night(), night)
	return !sameNight || m.TrainData != "" && m.TrainData != TrainDataHash(ch.job)
}

// TrainDataHash identifies the training data of a job by their URIs.
func TrainDataHash(job *configs.Job) string {
	sum := sha256.Sum256([]byte(strings.Join(job.Data.Train, "\n")))
	return hex.EncodeToString(sum[:])
}

// Exists reports whether output.model_dir has any model. If the night that made the first model is
// trained again, it has one, although no earlier run has made one.
func (ch *Chain) Exists() bool {
	_, err := modeldir.Generations(ch.job.Output.ModelDir)
	return !errors.Is(err, modeldir.ErrNoModel)
}

// listings caches the names in directories, each of which is read once: most directories that a
// template names do not exist.
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
			entries, err := disk.ReadDir(parent)
			for _, e := range entries {
				names[e.Name()] = true
			}
			if err != nil {
				names = nil
			}
		}
		l[parent] = names
	}
	if names == nil { // it cannot be listed, but path may exist all the same
		return !disk.Gone(path)
	}
	return names[filepath.Base(path)]
}
