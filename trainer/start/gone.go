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

// A night that is trained again starts from the same model as before. If this machine no longer has
// that model, because a newer one was restored to it or because output.keep_generations is small,
// output.remote may have it. Then it is restored for this run alone, and the published model stays
// published.

// startElsewhere restores the missing model that gone names from output.remote, for this run alone.
// If the job may not start from that model, it takes the one that it was made from, and so on. If
// the chain there begins with a new model, m.Previous stays nil.
func (m *Model) startElsewhere(ctx context.Context, gone *chain.GoneError) error {
	uri := m.Job.Output.Remote
	if uri == "" || gone.First.StartedFrom.Identity == "" {
		return gone
	}
	m.gone = gone
	d, err := transfer.OpenPresent(m.Sources, uri, int64(m.Job.Output.RemoteBytesPerSecond), "restoring", m.Log)
	var all []*remote.Manifest
	if err == nil {
		all, _, err = d.Generations(ctx)
	}
	if err != nil {
		return errkind.As(errkind.IO, fmt.Errorf("%w; output.remote may have it, but cannot be read: %w", gone, err))
	}
	origin, ok := m.Chain.OriginIn(all, gone.First)
	if !ok {
		return gone.And("nor is it in " + uri)
	}
	if origin == (modeldir.Origin{}) {
		return nil
	}
	name := origin.Name(gone.Dir)
	m.Log.Info("training.warm_start: latest: the model to start from is not on this machine any more; it is restored from output.remote for this run", "model", name, "remote", uri)
	p, err := m.restoreStart(ctx, origin.Identity, nil)
	var damaged *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &damaged) {
		return gone.And(fmt.Sprintf("nor is it complete in %s: %v", uri, err))
	}
	if err != nil {
		return errkind.As(errkind.IO, fmt.Errorf("%w; restoring it from output.remote has failed: %w", gone, err))
	}
	m.Start, m.Previous = m.Chain.StartAt(p.Dir, &p.Manifest), p
	m.Start.Origin, m.Start.Name = origin, name
	return nil
}
