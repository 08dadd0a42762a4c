package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"aibox/configs"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// openPrevious opens the model that training starts from, if there is one.
func (r *run) openPrevious(ctx context.Context) error {
	name := r.job.Training.WarmStart
	if name == configs.WarmStartLatest {
		c, err := r.models.chain.Latest()
		if err == nil && c == nil && !r.models.chain.Exists() {
			var restored bool
			if restored, err = r.restoreLatest(ctx); restored {
				c, err = r.models.chain.Latest()
			}
		}
		if err == nil && c != nil {
			var restored bool
			if restored, err = r.wholePrevious(ctx, c); restored {
				c, err = r.models.chain.Latest()
			}
		}
		var gone *chain.GoneError
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
		name = c.Name
		attrs := []any{"model", name, "generation", c.Generation}
		if c.Night != "" {
			attrs = append(attrs, "night", c.Night)
			if missing := daysBetween(c.Night, r.job.Night()) - 1; missing > 0 {
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
	r.models.start = r.models.chain.StartAt(p.Dir, &p.Manifest)
	if r.job.Training.WarmStart != configs.WarmStartLatest {
		if p, err = r.wholeNamed(ctx, p); err != nil {
			return fmt.Errorf("training.warm_start: %w", err)
		}
	}
	r.models.previous = p
	if !modeldir.SameDir(p.Dir, r.job.Output.ModelDir) { // else the run itself brings what lacks
		return transfer.Complete(ctx, p, r.data.Sources, int64(r.job.Output.RemoteBytesPerSecond), r.log)
	}
	return nil
}

// checkPrevious fails if the newest model is another one by now than that which
// openPrevious has opened: another run has committed a model before this one had the lock
// of the model directory.
func (r *run) checkPrevious() error {
	if r.job.Training.WarmStart != configs.WarmStartLatest {
		return nil
	}
	c, err := r.models.chain.Latest()
	var gone *chain.GoneError
	if errors.As(err, &gone) && r.models.gone != nil && gone.First.StartedFrom == r.models.gone.First.StartedFrom {
		return nil // as openPrevious has found
	}
	if err != nil {
		return err
	}
	p := r.models.previous
	if c == nil && p == nil || c != nil && p != nil && c.Identity == p.Identity() {
		return nil
	}
	return fmt.Errorf("training.warm_start: latest: %w: another run has written the newest model meanwhile; start again", modeldir.ErrLocked)
}

// origin says in a manifest what the model was made from and of which night it is.
func (r *run) origin(m *modeldir.Manifest) {
	m.SavedAt = time.Now().UTC().Format(time.RFC3339)
	m.Job, m.Night, m.TrainData = r.job.PlainName(), r.job.Night(), chain.TrainDataHash(r.job)
	m.NightDir, m.Inputs = r.job.ModelDirHasDate(), r.data.Hash()
	if r.models.start != nil {
		m.StartedFrom = r.models.start.Origin
	}
	m.PartialRecovery = r.partialRecovery()
}
