package refill

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/pace"
	"aibox/trainer/remote"
	"aibox/trainer/remotesnapshots"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// dirName is the directory, in the model directory, to which the table is restored that the lost
// rows come from.
const dirName = "refill"

// errNothingLeft says that the remaining rows have no snapshot to resume from.
var errNothingLeft = errors.New("the table no longer has a snapshot from which its other rows could continue")

// errConverted says that rows of the model that a run began with differ from the run's own rows,
// for example in width or in the optimizer of their state.
var errConverted = errors.New("the job has another row layout, or row optimizer, or counts days differently from that model")

// Run is an interrupted run whose table has lost files.
type Run struct {
	Job    *configs.Job
	Parts  *jobparts.Parts
	Store  *remotesnapshots.Store
	Record *runstate.Record // Do updates it for the next run
	Start  *chain.Start     // the model that the run started from; nil for a new one
	Lost   *modeldir.LostError
	Pace   pace.Uploads
	// TakeOver takes over the generation of the run.
	TakeOver func() (*modeldir.Writer, error)
	// Restored is set to what was restored to refill the table from.
	Restored *report.Arrival
}

// Do recovers the table and returns how. If that is impossible and the run has to go back as a
// whole, the log says why, and the result is nil.
func (r *Run) Do(ctx context.Context) (*report.Recovery, error) {
	x, log := r.Record, r.Store.Log
	whole := func(reason string, err error) (*report.Recovery, error) {
		log.Error("partial recovery is impossible, so the whole run goes back, and not only the lost rows", "reason", reason, "error", err)
		return nil, nil
	}
	took := time.Duration(0)
	if s := x.Snapshots.Remote; s != nil {
		took = s.Last()
	}
	switch p := x.Progress(); {
	case r.Pace.FullPays(took):
		return whole("partial recovery is not worthwhile: for recovery.max_lost_samples, a snapshot would be uploaded every "+r.Pace.Partial.String(), r.Lost)
	case x.Final != nil:
		return whole("the model was complete, and not committed yet", r.Lost)
	case p.Best != nil && p.Best.Snapshot != x.Snapshot:
		return whole("the best epoch so far has lost rows, too", r.Lost)
	}
	scratch := filepath.Join(r.Job.Output.ModelDir, dirName)
	if err := modeldir.Remove(scratch); modeldir.DiskLost(err) { // left by a process that was killed, or whose disk has failed
		return whole("leftovers of an earlier recovery cannot be deleted", err)
	} else if err != nil {
		return nil, err
	}
	from, err := r.origin(ctx, scratch)
	var gone *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &gone) {
		return whole("the model that the run began with has lost files, too, and is not in output.remote", err)
	}
	if errors.Is(err, errConverted) {
		return whole("rows of the model that the run began with were converted", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the lost rows cannot go back to what they were: %w", r.Lost, err)
	}
	if r.Job.Snapshots.Remote != "" {
		if from.newer, err = r.Store.FetchRows(ctx, r.Parts.Layout, filepath.Join(scratch, "rows"), from.step, x.Step); err != nil {
			return nil, fmt.Errorf("%w; the rows that were saved by priority cannot be read: %w", r.Lost, errors.Join(err, modeldir.Remove(scratch)))
		}
	}
	rec, err := r.table(ctx, from)
	err = errors.Join(err, modeldir.Remove(scratch))
	if errors.Is(err, errNothingLeft) {
		return whole("what is left of the table cannot be opened, for example because all of its directories are lost", err)
	}
	var budget *sparsetable.BudgetError
	if errors.As(err, &budget) {
		return whole("half of sparse_table.memory_bytes is too little for each of two tables", err)
	}
	if err != nil {
		return nil, err
	}
	if rec.RowsLost == 0 {
		log.Warn("the lost directories had no rows of the table, so nothing goes back", "lost", r.Lost.Error())
		return rec, nil
	}
	model := "the model will not be that of an undisturbed run"
	if rec.Exact() {
		model = "nothing was trained since what they went back to, so the model will be that of an undisturbed run"
	}
	log.Error("only the rows of the lost directories have gone back: "+model, "lost", r.Lost.Error(), "from", rec.From,
		"lost_rows", rec.RowsLost, "restored_rows", rec.RowsRestored, "saved_by_priority", rec.RowsByPriority, "lost_samples", rec.LostSamples, "lost_samples_of_run", report.LostSamples(x.Recoveries), "max_lost_samples", r.Job.Recovery.MaxLostSamples)
	return rec, nil
}
