package trainer

import (
	"context"
	"fmt"
	"time"

	"aibox/configs"
	"aibox/trainer/modeldir"
	"aibox/trainer/pace"
	"aibox/trainer/refill"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// When a disk fails, a table on several disks loses one of its directories. Then the run goes back
// to the last intact snapshot: the one in snapshots.remote or, if there is none, to the model that
// it started from, which output.remote may have. That is full recovery (CPR, Maeng et al., MLSys
// 2021, §2.2): what was trained since is trained again, to the same bits. Files in the remaining
// directories are not fetched if they equal those that were uploaded.

// history is what a run has gone through, in this process and in earlier ones.
type history struct {
	started    time.Time
	earlier    float64             // seconds that the run took in earlier processes
	resumed    []report.Resumption // after interruptions
	recoveries []report.Recovery   // after losses
	refilled   bool                // lost rows were restored: see partially
}

// elapsed returns how many seconds the run has taken, without the time between its processes.
func (h *history) elapsed() float64 { return h.earlier + time.Since(h.started).Seconds() }

// losses are what a run has lost of its table, and what follows from that.
type losses struct {
	loss   *loss               // nil if there is none, or the run has recovered from it
	failed *modeldir.LostError // the loss that has ended the run
	again  *loss               // handed to the run that begins next because of failed; nil if none does
	// leftOut are the entries of sparse_table.dirs that the job leaves out, since their disks have
	// failed, are read-only or are not mounted.
	leftOut []modeldir.LostDir
}

// loss is a loss that the run has found, or that has ended the run before it in this process, until
// the run has recovered from it.
type loss struct {
	err *modeldir.LostError
	at  report.Resumption // of the run that ended, or else of the newest snapshot of an interrupted run; zero if a model has lost its table
	// snapshots says that the newest snapshot is not intact; remainingFiles are then the remaining files
	// of the table.
	snapshots      bool
	remainingFiles map[string]string
	uploaded       bool // the run had a snapshot in snapshots.remote
}

// lostTable records the loss of files of an interrupted run's table.
func (r *run) lostTable(lost *modeldir.LostError, x *runstate.Record) {
	if r.loss == nil {
		r.loss = &loss{err: lost, at: x.Place()}
	}
	r.loss.uploaded = x.Uploaded()
	r.loss.snapshots, r.loss.remainingFiles = true, modeldir.RemainingFiles(r.job.Output.ModelDir)
	r.log.Error("files of the table of an interrupted run are lost; the run goes back to the last intact snapshot", "step", x.Step, "trained_examples", x.Place().Examples, "error", lost)
}

// partially recovers the table of an interrupted run partially, if the job asks for that, and
// reports whether it did.
func (r *run) partially(ctx context.Context, data []byte, x *runstate.Record, id *runstate.Identity, lost *modeldir.LostError) (bool, error) {
	if r.job.Recovery.Mode != configs.RecoveryPartial {
		return false, nil
	}
	run := refill.Run{
		Job: r.job, Parts: &r.Parts, Store: r.store(), Record: x, Start: id.Start, Lost: lost, Pace: pace.NewUploads(r.job, &r.snapshots.pace),
		TakeOver: func() (*modeldir.Writer, error) { return r.takeOver(data) }, Restored: &r.arriving.Restored,
	}
	rec, err := run.Do(ctx)
	if rec != nil && rec.RowsLost > 0 {
		r.loss = nil // x.Recoveries describes it
	}
	r.refilled = rec != nil
	return rec != nil, err
}

// recovered records how a run goes on after a loss.
func (r *run) recovered(from string, at report.Resumption) {
	l := r.loss
	if l == nil {
		return
	}
	r.loss = nil
	rec := report.Recovery{
		Time: time.Now().UTC().Truncate(time.Second), Mode: configs.RecoveryFull, Lost: l.err.Lost, From: from,
		Step: at.Step, Examples: at.Examples, Again: max(l.at.Examples-at.Examples, 0),
	}
	r.recoveries = append(r.recoveries, rec)
	r.log.Error("files of the table were lost, and training continues; the model will be the same as without the loss", "lost", l.err.Error(), "from", from, "step", at.Step, "trained_examples", at.Examples, "examples_trained_again", rec.Again)
}

// checkPlaces fails if a directory is lost in which a new table has to be made. Then the files of
// the interrupted run are not deleted, since the disk may come back.
func (r *run) checkPlaces() error {
	if r.loss == nil {
		return nil
	}
	if err := modeldir.CheckPlaces(r.job.SparseTable.Dirs); err != nil {
		return fmt.Errorf("%w, and a new table cannot be made either: %w; %s", r.loss.err, err, replaceDisk)
	}
	return nil
}

// snapshotSource names the source of the snapshot from which the run resumes.
func (r *run) snapshotSource() string {
	if r.loss != nil && !r.loss.snapshots {
		return "the last snapshot on this machine"
	}
	return r.job.Snapshots.Remote
}

// beginning names what a run that begins anew goes back to.
func (r *run) beginning() string {
	if r.models.Start == nil {
		return "a new model"
	}
	return r.models.Start.Name
}
