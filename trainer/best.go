package trainer

import (
	"context"

	"aibox/trainer/densefile"
	"aibox/trainer/modeldir"
	"aibox/trainer/runstate"
)

// keepBest saves the current state as the best one so far.
func (r *run) keepBest(ctx context.Context) error {
	r.snapshots.wait()
	id, err := r.saveModel(ctx, r.state.Last.Step)
	if err != nil {
		return err
	}
	before := r.state.Best
	best := *r.state.Last
	best.Snapshot = id
	r.state.Best = &best
	if r.snapshots.pace.On() { // the same files save the run, and the previous state is dropped
		if r.snapshots.saveExisting(id, nil) != nil && before != nil {
			r.snapshots.older = append(r.snapshots.older, before.Snapshot)
		}
		return nil
	}
	if before != nil {
		r.models.writer.RemoveOtherDense(modeldir.DenseName(best.Step))
		return r.table.DropSnapshot(before.Snapshot)
	}
	return nil
}

// restore replaces model and table by the state that was kept for an earlier epoch.
func (r *run) restore(ctx context.Context, k *runstate.Kept) error {
	if err := r.table.Close(); err != nil {
		return err
	}
	r.table.Table = nil
	if err := r.openTable(ctx, k.Snapshot); err != nil {
		return err
	}
	saved, err := r.models.writer.ReadDense(modeldir.DenseName(k.Step))
	if err != nil {
		return err
	}
	if err := densefile.Load(r.tensors(k.Step), saved); err != nil {
		return err
	}
	return r.engine.Import()
}
