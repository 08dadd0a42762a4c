package start

import (
	"context"
	"errors"
	"fmt"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// Open opens the model that training starts from, if there is one.
func (m *Model) Open(ctx context.Context) error {
	name := m.Job.Training.WarmStart
	if name == configs.WarmStartLatest {
		c, err := m.Chain.Latest()
		if err == nil && c == nil && !m.Chain.Exists() {
			var restored bool
			if restored, err = m.restoreLatest(ctx); restored {
				c, err = m.Chain.Latest()
			}
		}
		if err == nil && c != nil {
			var restored bool
			if restored, err = m.completePrevious(ctx, c); restored {
				c, err = m.Chain.Latest()
			}
		}
		var gone *chain.GoneError
		if errors.As(err, &gone) {
			if err = m.startElsewhere(ctx, gone); errors.As(err, &gone) {
				err = m.ifGone(ctx, err)
			}
		}
		if err != nil {
			return fmt.Errorf("training.warm_start: latest: %w", err)
		}
		if m.Previous != nil { // restored for this run
			return nil
		}
		if c == nil {
			m.Log.Info("training.warm_start: latest: there is no model of an earlier run, so training begins with a new one", "model_dir", m.Job.Output.ModelDir, "dates_before", m.Job.ModelDirHasDate())
			return nil
		}
		name = c.Name
		attrs := []any{"model", name, "generation", c.Generation}
		if c.Night != "" {
			attrs = append(attrs, "night", c.Night)
			if missing := daysBetween(c.Night, m.Job.Night()) - 1; missing > 0 {
				attrs = append(attrs, "missing_nights", missing)
			}
		}
		m.Log.Info("training.warm_start: latest", attrs...)
		if m.Later = m.later(ctx, c); m.Later != "" {
			m.Log.Warn(m.Later)
		}
	}
	if name == "" {
		return nil
	}
	p, err := modeldir.Open(name)
	if err != nil {
		return fmt.Errorf("training.warm_start: %w", err)
	}
	m.Start = m.Chain.StartAt(p.Dir, &p.Manifest)
	if m.Job.Training.WarmStart != configs.WarmStartLatest {
		if p, err = m.wholeNamed(ctx, p); err != nil {
			return fmt.Errorf("training.warm_start: %w", err)
		}
	}
	m.Previous = p
	if !disk.SameDir(p.Dir, m.Job.Output.ModelDir) { // else the run itself fetches what is missing
		return transfer.Complete(ctx, p, m.Sources, int64(m.Job.Output.RemoteBytesPerSecond), m.Log)
	}
	return nil
}

// ifGone decides what to do if an earlier model than the published one is nowhere. err says so.
func (m *Model) ifGone(ctx context.Context, err error) error {
	if ctx.Err() != nil || m.Fresh {
		return err
	}
	return m.IfGone(ctx, err)
}

// Check fails if the newest model is not the one that Open has opened, because another run has
// committed a model before this one had the lock of the model directory.
func (m *Model) Check() error {
	if m.Job.Training.WarmStart != configs.WarmStartLatest {
		return nil
	}
	c, err := m.Chain.Latest()
	var gone *chain.GoneError
	if errors.As(err, &gone) && m.gone != nil && gone.First.StartedFrom == m.gone.First.StartedFrom {
		return nil // as when Open looked
	}
	if err != nil {
		return err
	}
	p := m.Previous
	if c == nil && p == nil || c != nil && p != nil && c.Identity == p.Identity() {
		return nil
	}
	return fmt.Errorf("training.warm_start: latest: %w: another run has written the newest model meanwhile; start again", modeldir.ErrLocked)
}
