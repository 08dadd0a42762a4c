package trainer

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"time"

	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
	"aibox/trainer/mirror"
	"aibox/trainer/priority"
	"aibox/trainer/prioritysaves"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
)

// newPrioritySaves begins to save rows by priority; nil: the job does not.
func (u *uploads) newPrioritySaves(earlier *mirror.Summary) *prioritysaves.Saves {
	r := u.run
	if !jobparts.Prioritized(r.job) {
		return nil
	}
	list, chunks := jobparts.PriorityBytes(r.job)
	if earlier == nil {
		earlier = new(mirror.Summary)
	}
	fraction := r.job.Snapshots.PriorityFraction
	return prioritysaves.New(prioritysaves.Options{
		List: priority.New(r.job.Snapshots.Priority, r.Layout, list, r.job.Seed), Fraction: fraction, ChunkBytes: chunks,
		Layout: r.Layout, Table: r.table.Table, TempFile: r.models.writer.TempFile,
		Due:    func(since time.Duration, snapshots int64) bool { return u.pace.PriorityDue(since, snapshots, fraction) },
		Upload: u.uploadRows, Earlier: *earlier, Log: r.log,
	})
}

// passBegins, passEnds and yieldRows are hooks of a flow.
func (r *run) passBegins(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.priority.PassBegins(w)
	}
}

func (r *run) passEnds(w flow.Pulled) {
	if u := r.snapshots.uploads; u != nil {
		u.priority.PassEnds(w, r.state.Engine.Step)
	}
}

func (r *run) yieldRows() bool {
	u := r.snapshots.uploads
	return u != nil && u.priority.EndCollecting()
}

// unclosed is a file that is closed by somebody else.
type unclosed struct{ io.ReaderAt }

func (unclosed) Close() error { return nil }

// rowsName is the name of the file of a priority save.
const rowsName = "rows"

// uploadRows uploads rows that were saved by priority.
func (u *uploads) uploadRows(ctx context.Context, s *prioritysaves.Save) (*remote.Published, error) {
	if err := u.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer u.endTurn()
	if u.Summary().Step >= s.Step {
		return nil, nil // a snapshot that is there has newer rows
	}
	r := u.run
	d, err := r.presentSnapshots("uploading rows")
	if err != nil {
		return nil, err
	}
	model, err := json.Marshal(runstate.PrioritySave{
		Format: runstate.RecordFormat, Version: r.opts.Version, Run: r.identity, Time: r.started.UTC(), Step: s.Step, Kind: r.job.Snapshots.Priority, Rows: s.Rows, Layout: r.Layout,
	})
	if err != nil {
		return nil, err
	}
	return d.Publish(ctx, remote.Publication{
		Job: r.job.PlainName(), Owner: r.snapshotOwner(), Identity: sha256Of(model), AiboxVersion: r.opts.Version,
		Kind: remote.PrioritySave, Run: r.runKey(), Step: s.Step, Model: model, Keep: int(math.Ceil(2 / r.job.Snapshots.PriorityFraction)),
		Files: []remote.Local{{Name: rowsName, Bytes: s.Rows * int64(priority.RowBytes(r.Layout)), Open: func() (remote.ReaderAt, error) { return unclosed{s.File}, nil }}},
	})
}
