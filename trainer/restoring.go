package trainer

import (
	"context"
	"errors"
	"fmt"

	"aibox/internal/errkind"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// restoringTo are options that restore a model to start from out of output.remote, as a whole.
func (r *run) restoringTo(dir string) transfer.RestoreOptions {
	return transfer.RestoreOptions{
		From: r.job.Output.Remote, To: dir, Dirs: r.job.SparseTable.Dirs, BytesPerSecond: int64(r.job.Output.RemoteBytesPerSecond),
		Options: r.opts.transfer(), Buckets: transfer.BucketsBefore,
	}
}

// restoreLatest restores the newest model of an earlier run from output.remote, if there
// is one, where the job's chain has none on this machine. It reports whether it did.
func (r *run) restoreLatest(ctx context.Context) (bool, error) {
	uri := r.job.Output.Remote
	if uri == "" {
		return false, nil
	}
	o := r.restoringTo(r.job.Output.ModelDir)
	o.Job, o.Accept, o.Buckets = r.job.PlainName(), r.models.chain.MayStartFrom, transfer.BucketsLater
	out, err := transfer.RestoreWith(ctx, r.data.Sources, o)
	if errors.Is(err, transfer.ErrNoEarlier) {
		r.log.Warn("output.remote has models of this job, but none of an earlier night, and there is none on this machine: training begins with a new model", "remote", uri, "night", r.job.Night())
		return false, nil
	}
	if errors.Is(err, remote.ErrNone) {
		r.log.Info("output.remote has no model of an earlier run either", "reason", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("there is no model of an earlier run on this machine, and output.remote, which may have one, cannot be read: %w", errkind.As(errkind.IO, err))
	}
	r.restored = report.Arrival{Remote: uri, Bytes: out.Bytes, FetchedBytes: out.Moved, FetchedAgain: out.Again, UsableSeconds: out.Seconds, WholeSeconds: out.Seconds}
	return true, nil
}
