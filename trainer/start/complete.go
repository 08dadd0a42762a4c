package start

import (
	"context"
	"errors"
	"fmt"

	"aibox/internal/errkind"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// completePrevious makes sure that the table of the model that training.warm_start: latest stands for
// is complete. If it has lost files, completePrevious restores the same model from output.remote, or
// the newest one there that the job may start from. If other files of the model are lost, it
// restores the same model or none. It reports whether it did. A model that is not the published
// one, because a night is trained again, is restored for this run alone.
func (m *Model) completePrevious(ctx context.Context, c *chain.Choice) (restored bool, err error) {
	p, err := modeldir.Open(c.Name)
	if err != nil {
		return m.restoreOwn(ctx, c, err)
	}
	if c.Name != p.Dir {
		return false, m.completeEarlier(ctx, p)
	}
	identity := p.Identity()
	lost, remaining := m.lossOf(ctx, p)
	if lost == nil {
		own := m.ownLossOf(ctx, p)
		if err := p.Close(); err != nil || own == nil {
			return false, err
		}
		return m.restoreOwn(ctx, c, own)
	}
	if err := p.Close(); err != nil { // the model may be deleted meanwhile
		return false, err
	}
	if m.Job.Output.Remote == "" {
		return false, m.unusable(p, lost, "the job has no output.remote from which the model could be restored")
	}
	m.Log.Error("the table of the model to start from has lost files; the model is restored from output.remote", "model", c.Name, "remote", m.Job.Output.Remote, "error", lost)
	out, err := m.restoreBeside(ctx, remaining, identity, nil)
	if notThere(err) {
		m.Log.Error("output.remote has no complete copy of that model; the newest other one there of an earlier run is taken: what was trained since is not in it", "remote", m.Job.Output.Remote, "reason", err)
		out, err = m.restoreBeside(ctx, nil, "", func(x *modeldir.Manifest) bool { return x.Identity() != identity && m.Chain.MayStartFrom(x) })
	}
	return m.restored(c, lost, out, err)
}

// notThere reports whether a model was not restored because output.remote does not have it
// completely.
func notThere(err error) bool {
	return errors.Is(err, remote.ErrNone) || errors.As(err, new(*remote.DamagedError))
}

// restored finishes the restoration of the published model c, which cannot be used because of
// fault. err says why the restoration failed, if it did.
func (m *Model) restored(c *chain.Choice, fault error, out *transfer.Restored, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("the model %s can be neither used (%w) nor restored: %w", c.Name, fault, errkind.As(errkind.IO, err))
	}
	_ = errors.As(fault, &m.Lost)
	m.Log.Info("the model to start from is restored", "from", out.From, "model", modeldir.JoinName(out.ModelDir, out.Generation), "fetched_bytes", out.Moved)
	return true, nil
}

// completeEarlier is completePrevious for a model p that is not published. It closes p, and leaves
// m.Previous unchanged if p is complete.
func (m *Model) completeEarlier(ctx context.Context, p *modeldir.Model) error {
	start := m.Chain.StartAt(p.Dir, &p.Manifest)
	whole, err := m.wholeNamed(ctx, p)
	if err != nil {
		return m.ifGone(ctx, err)
	}
	if whole == p {
		return p.Close()
	}
	m.Start, m.Previous = start, whole
	return nil
}

// wholeNamed returns the model that training.warm_start names: p or, if the table of p has lost
// files, the same model restored from output.remote for this run alone. In the latter case it
// closes p. The model directory of p does not change.
func (m *Model) wholeNamed(ctx context.Context, p *modeldir.Model) (*modeldir.Model, error) {
	lost, remaining := m.lossOf(ctx, p)
	if lost == nil {
		return p, nil
	}
	identity, uri := p.Identity(), m.Job.Output.Remote
	if err := p.Close(); err != nil {
		return nil, err
	}
	if uri == "" {
		return nil, m.unusable(p, lost, "the job has no output.remote from which the model could be restored")
	}
	m.Log.Error("the table of the model to start from has lost files; the model is restored from output.remote for this run", "model", p.Name, "remote", uri, "error", lost)
	start, err := m.restoreStart(ctx, identity, remaining)
	if notThere(err) {
		return nil, m.unusable(p, lost, fmt.Sprintf("%s has no complete copy of that model (%v)", uri, err))
	}
	if err != nil {
		return nil, fmt.Errorf("the model %s can be neither used (%w) nor restored: %w", p.Name, lost, errkind.As(errkind.IO, err))
	}
	m.Lost = lost
	return start, nil
}

// lossOf returns what the table of a model has lost, and its remaining files; nil if nothing.
func (m *Model) lossOf(ctx context.Context, p *modeldir.Model) (lost *modeldir.LostError, remaining map[string]string) {
	if fault := faultOfArriving(p); fault != nil {
		return fault, nil
	}
	if !errors.As(p.CheckTable(ctx, m.Log), &lost) {
		return nil, nil // whoever opens the model reports other faults
	}
	return lost, p.RemainingFiles()
}

// unusable returns the error for a model to start from whose table has lost files. why says why the
// model cannot be restored.
func (m *Model) unusable(p *modeldir.Model, lost error, why string) error {
	return fmt.Errorf("the model %s cannot be used: %w; mount the missing file system. If it is gone for good: %s; name another model in training.warm_start, or set it to \"\" to begin with a new one", p.Name, errkind.As(errkind.IO, lost), why)
}

// faultOfArriving returns why files of a model's table that have not arrived never will; nil if
// they may, or have arrived.
func faultOfArriving(p *modeldir.Model) *modeldir.LostError {
	t := p.Arriving()
	if t == nil {
		return nil
	}
	said, err := remote.AnnouncedIn(t.Records...)
	if err == nil && said != nil {
		err = said.Fault()
	}
	if err == nil {
		return nil
	}
	return &modeldir.LostError{Dirs: t.Dirs, Err: err}
}
