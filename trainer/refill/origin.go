package refill

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/transfer"
)

// origin is what lost rows go back to.
type origin struct {
	name     string
	examples int64                                            // S_last
	step     int64                                            // the step of these, in this run
	newer    []remotesnapshots.SavedRows                      // newer rows, the newest first
	open     func(context.Context) (sparsetable.Table, error) // nil if there are no rows
}

// origin finds what lost rows go back to, and restores it to scratch.
func (r *Run) origin(ctx context.Context, scratch string) (*origin, error) {
	if r.Job.Snapshots.Remote != "" {
		from, err := r.snapshot(ctx, scratch)
		if from != nil || err != nil {
			return from, err
		}
	}
	if r.Start == nil {
		return &origin{name: "a new model"}, nil
	}
	if r.Record.Converted {
		return nil, errConverted
	}
	from := &origin{name: r.Start.Name}
	name := r.Start.Name
	m, err := modeldir.Open(name)
	if err == nil {
		err = m.CheckTable(ctx, r.Store.Log)
		switch {
		case err != nil:
		case r.Start.Identity != "" && m.Identity() != r.Start.Identity: // for example if its directory was made anew, where numbers begin at 1
			err = errors.New("another model has that name now")
		case m.Arriving() != nil:
			err = sparsetable.ErrArriving
		}
		err = errors.Join(err, m.Close())
	}
	if err != nil {
		if r.Job.Output.Remote == "" {
			return nil, fmt.Errorf("the model %s, from which the run has started, cannot be read, and there is no output.remote: %w", name, err)
		}
		_, err := transfer.RestoreWith(ctx, r.Store.Sources, transfer.RestoreOptions{
			From: r.Job.Output.Remote, Job: r.Job.PlainName(), To: scratch, Dirs: r.Job.SparseTable.Dirs, Options: transfer.Options{Logger: r.Store.Log, Version: r.Store.Version},
			BytesPerSecond: int64(r.Job.Output.RemoteBytesPerSecond),
			Accept:         func(m *modeldir.Manifest) bool { return m.Identity() == r.Start.Identity },
		})
		if err != nil {
			return nil, err
		}
		name = scratch
	}
	from.open = func(ctx context.Context) (sparsetable.Table, error) {
		m, err := modeldir.Open(name)
		if err != nil {
			return nil, err
		}
		t, err := m.OpenTable(ctx, sparsetable.Options{MemoryBytes: int64(r.Job.SparseTable.MemoryBytes) / 2, Logger: r.Store.Log, SSD: sparsetable.SSDOptions{Brief: true}})
		return t, errors.Join(err, m.Close()) // the table has a lock of its own
	}
	return from, nil
}

// snapshot restores the run's newest complete snapshot from snapshots.remote; nil if there is none.
func (r *Run) snapshot(ctx context.Context, scratch string) (*origin, error) {
	s, err := r.Store.RestoreUntil(ctx, r.Record.Step, r.Record.Uploaded(), scratch, modeldir.RemainingFiles(r.Job.Output.ModelDir))
	if err != nil || s == nil {
		return nil, err
	}
	*r.Restored = s.Arrival
	open := func(ctx context.Context) (sparsetable.Table, error) {
		o, err := s.Table()
		if err != nil {
			return nil, err
		}
		o.Layout = r.Parts.Layout
		return sparsetable.Open(ctx, o)
	}
	return &origin{name: s.Name, examples: s.Examples, step: s.Step, open: open}, nil
}

// refill inserts the rows that a table has lost.
func (from *origin) refill(ctx context.Context, to sparsetable.LossHandler) (rows int64, err error) {
	t, err := from.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return to.RefillFrom(ctx, t)
}
