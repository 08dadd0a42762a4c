package start

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// restoringTo returns options to restore a model to start from completely, from output.remote.
func (m *Model) restoringTo(dir string) transfer.RestoreOptions {
	return transfer.RestoreOptions{
		From: m.Job.Output.Remote, To: dir, Dirs: m.Job.SparseTable.Dirs, BytesPerSecond: int64(m.Job.Output.RemoteBytesPerSecond),
		Options: transfer.Options{Logger: m.Log, Version: m.Version}, Buckets: transfer.BucketsBefore,
	}
}

// restore restores a model from output.remote, and sets m.Restored.
func (m *Model) restore(ctx context.Context, o transfer.RestoreOptions) (*transfer.Restored, error) {
	out, err := transfer.RestoreWith(ctx, m.Sources, o)
	if err == nil {
		*m.Restored = report.Arrival{Remote: o.From, Bytes: out.Bytes, FetchedBytes: out.Moved, FetchedAgain: out.Again, UsableSeconds: out.Seconds, WholeSeconds: out.Seconds}
	}
	return out, err
}

// restoreLatest restores the newest model of an earlier run from output.remote, if there is one and
// the job's chain has none on this machine. It reports whether it did. If the models there are of
// this night, because its command is given again after its machine was lost, it restores the newest
// of them, unless that began as a new model. Then the chain shows that the night need not be
// trained, or why it cannot be. It fails if there is none, but a manifest there that cannot be read,
// which may be that of an earlier model.
func (m *Model) restoreLatest(ctx context.Context) (bool, error) {
	uri := m.Job.Output.Remote
	if uri == "" {
		return false, nil
	}
	o := m.restoringTo(m.Job.Output.ModelDir)
	o.Job, o.Accept, o.Buckets = m.Job.PlainName(), m.Chain.MayStartFrom, transfer.BucketsLater
	_, err := m.restore(ctx, o)
	if errors.Is(err, transfer.ErrNoEarlier) {
		o.Buckets, o.Accept = transfer.BucketsBefore, func(x *modeldir.Manifest) bool {
			return x.StartedFrom != (modeldir.Origin{}) && !modeldir.LaterNight(x.OfNight(), m.Job.Night())
		}
		_, err = m.restore(ctx, o)
	}
	if errors.Is(err, remote.ErrNone) && errors.As(err, new(*remote.DamagedError)) {
		return false, fmt.Errorf("there is no model of an earlier run on this machine, and output.remote has a damaged manifest, which may be that of one: publish the model again from a machine that still has it (`aibox publish`), or delete the damaged files if the job is to begin with a new model: %w", err)
	}
	if errors.Is(err, transfer.ErrNoEarlier) {
		m.Log.Warn("output.remote has models of this job, but none of an earlier night, and there is none on this machine: training begins with a new model", "remote", uri, "night", m.Job.Night())
		return false, nil
	}
	if errors.Is(err, remote.ErrNone) {
		m.Log.Info("output.remote has no model of an earlier run either", "reason", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("there is no model of an earlier run on this machine, and one that output.remote may have cannot be restored: %w", errkind.As(errkind.IO, err))
	}
	return true, nil
}

// restoreBeside restores a model from output.remote to the job's model directory: the one with the
// given identity or, if that is "", the newest one that accept accepts.
func (m *Model) restoreBeside(ctx context.Context, remaining map[string]string, identity string, accept func(*modeldir.Manifest) bool) (*transfer.Restored, error) {
	o := m.restoringTo(m.Job.Output.ModelDir)
	o.Job, o.Identity, o.Accept, o.Beside, o.RemainingFiles = m.Job.PlainName(), identity, accept, true, remaining
	return m.restore(ctx, o)
}

// restoreStart restores a model from output.remote for this run alone.
func (m *Model) restoreStart(ctx context.Context, identity string, remaining map[string]string) (*modeldir.Model, error) {
	scratch := m.dir()
	if _, err := modeldir.Generations(scratch); !errors.Is(err, modeldir.ErrNoModel) { // of a process that was killed
		if err := modeldir.Remove(scratch); err != nil && !modeldir.DiskLost(err) {
			return nil, err
		}
	}
	o := m.restoringTo(scratch)
	o.Beside = true // files on a failed disk cannot be deleted
	o.Identity, o.RemainingFiles = identity, remaining
	out, err := m.restore(ctx, o)
	if err != nil {
		return nil, err
	}
	m.Log.Info("the model to start from is restored", "from", out.From, "fetched_bytes", out.Moved)
	return modeldir.Open(scratch)
}

// dir returns the directory, in the model directory, to which a model is restored for this run
// alone.
func (m *Model) dir() string { return filepath.Join(m.Job.Output.ModelDir, "start") }

// Remove deletes the model that was restored for this run, if any. By then, the run's table has its
// rows, or the run has failed.
func (m *Model) Remove() {
	p := m.Previous
	if p == nil || p.Dir != m.dir() {
		return
	}
	_ = p.Close() // it was only read
	m.RemoveLeft()
}

// RemoveLeft deletes the model that was restored for a run alone, including a run that was killed.
func (m *Model) RemoveLeft() {
	dir := m.dir()
	if len(modeldir.AllTableDirs(dir)) == 0 { // it is no model directory
		return
	}
	if err := modeldir.Remove(dir); err != nil {
		m.Log.Warn("the model that was restored to start from could not be deleted; it takes space on disk", "dir", dir, "error", err)
	}
}
