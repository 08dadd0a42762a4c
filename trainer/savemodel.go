package trainer

import (
	"context"
	"fmt"

	"aibox/trainer/densefile"
	"aibox/trainer/modeldir"
	"aibox/trainer/tensorfile"
)

// saveModel saves the dense part and the table after a step, and returns the ID of the table's
// snapshot.
func (r *run) saveModel(ctx context.Context, step int64) (id uint64, err error) {
	err = r.withSpace(func() error {
		if err := r.models.writer.SaveDense(modeldir.DenseName(step), r.tensors(step)); err != nil {
			return err
		}
		id, err = r.snapshot(ctx, step)
		return err
	})
	return id, err
}

func (r *run) snapshot(ctx context.Context, step int64) (uint64, error) {
	m := modeldir.Manifest{Step: step, Dense: modeldir.DenseName(step)}
	pending, err := r.table.Snapshot(ctx, m.TableRecord())
	if err != nil {
		return 0, fmt.Errorf("table snapshot: %w", err)
	}
	info, err := pending.Wait()
	if err != nil {
		return 0, fmt.Errorf("table snapshot: %w", err)
	}
	if r.table.base != 0 { // it would keep files that the table no longer needs
		if err := r.table.DropSnapshot(r.table.base); err != nil {
			return 0, fmt.Errorf("table snapshot: %w", err)
		}
		r.table.base = 0
	}
	return info.ID, nil
}

// tensors returns the tensors of the dense file after step t. They share memory with the model.
func (r *run) tensors(t int64) []tensorfile.Tensor {
	return densefile.Trained(r.model, &r.state.Engine, r.Rows, t)
}
