package trainer

import (
	"context"
	"fmt"

	"aibox/sparsetable"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
)

// runTable is the table that a run trains.
type runTable struct {
	sparsetable.Table
	init      func(key uint64, row []float32)
	dirs      []string // outside of the model directory; may be nil
	base      uint64   // the cloned snapshot, until the run has one of its own; 0 if there is none
	day       uint32   // the job's day, which trained rows get as lastSeen
	converted bool     // the rows began as converted rows of the earlier model
	passLimit flow.Limit
	passBytes flow.Gauge
}

// newTable returns the options of the run's table, and makes its directories.
func (r *run) newTable() (sparsetable.Options, error) {
	if r.table.dirs == nil {
		r.leaveOutFailed()
		var err error
		if r.table.dirs, err = r.models.writer.PlaceTable(r.job.SparseTable.Dirs); err != nil {
			return sparsetable.Options{}, fmt.Errorf("sparse_table.dirs: %w", err)
		}
		for _, o := range r.models.writer.Freed() {
			r.log.Info("the table of a run that was killed is deleted", "dir", o.Dir, "bytes", o.Bytes, "model_dir", o.ModelDir)
		}
	}
	return r.placedTable(), nil
}

// placedTable is newTable for a table whose directories are known.
func (r *run) placedTable() sparsetable.Options {
	o := jobparts.TableOptions(r.job)
	o.Dir, o.SSD.Dirs = r.models.writer.TableDir(), r.table.dirs
	o.Layout, o.Init, o.Logger, o.FS = r.Layout, r.table.init, r.log, r.opts.tableFS
	o.SSD.Source = r.arriving.Source()
	return o
}

// openTable opens the run's table: empty, or at a snapshot of this run.
func (r *run) openTable(ctx context.Context, snapshot uint64) error {
	o, err := r.newTable()
	if err != nil {
		return err
	}
	return r.openTableIn(ctx, o, snapshot)
}

// openTableIn opens the run's table at the place given by o.
func (r *run) openTableIn(ctx context.Context, o sparsetable.Options, snapshot uint64) error {
	o.SnapshotID, o.MustExist = snapshot, snapshot != 0
	t, err := sparsetable.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("sparse_table: %w", err)
	}
	r.table.Table = t
	return nil
}

func (r *run) closeTable() {
	if r.table.Table == nil {
		return
	}
	if err := r.table.Close(); err != nil {
		r.log.Warn("closing the table", "error", err)
	}
	r.table.Table = nil
}
