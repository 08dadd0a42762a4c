package trainer

import (
	"context"
	"errors"

	"aibox/trainer/modeldir"
)

// trim deletes the earlier models that output.keep_generations does not allow, and logs it.
func (r *run) trim() {
	start := ""
	if r.models.Start != nil {
		start = r.models.Start.Identity
	}
	r.models.writer.Keep = r.job.Output.KeepGenerations
	r.models.writer.Trim(start)
	r.logLeftovers()
}

// logLeftovers logs which files of earlier runs were deleted, and which could not be.
func (r *run) logLeftovers() {
	if says := r.models.startsOver; says != nil {
		r.models.startsOver = nil
		says()
	}
	for _, err := range r.models.writer.Leftovers() {
		r.log.Warn("files of an earlier run could not be deleted or replaced; the next run tries again", "error", err)
	}
}

// close frees what is still open, and returns failure, perhaps as a *ResumableError. After a
// failure it removes the generation, unless another process can resume from it, and leaves reports
// that give the reason.
func (r *run) close(ctx context.Context, failure error) error {
	r.snapshots.wait()
	r.snapshots.uploads.Stop()
	status := r.opts.Status.View()
	r.opts.Status.End()
	if r.reports != nil {
		_ = r.reports.Close() // after success closed already
	}
	if r.data.Quarantine != nil {
		_ = r.data.Quarantine.Close() // after success closed already
	}
	if r.table.Table != nil {
		r.summary.Table = r.table.Stats()
	}
	if err := r.arriving.Close(); err != nil {
		r.log.Warn("closing the files that have not arrived", "error", err)
	}
	r.closeEngine()
	r.closeTable()
	if r.models.Previous != nil {
		_ = r.models.Previous.Close() // it was only read
		r.models.Remove()
	}
	made := r.models.writer != nil && r.models.writer.Committed() // something failed after the commit of the model
	others := errors.Is(failure, modeldir.ErrLocked)              // another run is using the directory
	if failure != nil && !made && !others {
		failure = r.resumable(ctx, failure)
		var again bool
		if again, failure = r.suspended(failure); !again {
			if err := r.reportFailure(ctx, failure, status); err != nil {
				r.log.Warn("the summary of this run could not be written", "error", err)
			}
		}
	}
	if r.models.writer != nil {
		if others && r.snapshots.saved != nil {
			r.models.writer.Suspend()
		}
		if err := r.models.writer.Close(); err != nil {
			r.log.Warn("closing the model directory", "error", err)
		}
	}
	if r.data.Sources != nil {
		if err := r.data.Sources.Close(); err != nil {
			r.log.Warn("closing sources", "error", err)
		}
	}
	return failure
}
