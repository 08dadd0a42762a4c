package remotesnapshots

import (
	"context"
	"path/filepath"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/mirror"
	"aibox/trainer/modeldir"
	"aibox/trainer/modelfiles"
	"aibox/trainer/pace"
	"aibox/trainer/prioritysaves"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// Source is the run whose snapshots are uploaded.
type Source struct {
	Identity []byte
	Started  time.Time
	Writer   *modeldir.Writer
	Table    sparsetable.Table
	Dirs     []string // of the table; nil if it is in the model directory
	Layout   sparsetable.Layout
	// Arrived waits until all files of the table are on this machine.
	Arrived func(context.Context) error
}

// Uploads uploads the snapshots of a run, one thing at a time. Its methods are for the goroutines
// that take snapshots. The methods of a nil Uploads do nothing.
type Uploads struct {
	*mirror.Uploader
	Priority *prioritysaves.Saves // nil if there are none

	store   Store
	source  Source
	indexes *modelfiles.Indexes
	pace    pace.Uploads
	full    bool  // full recovery is cheaper, although the job asks for partial recovery
	latest  int64 // step of the last snapshot that was handed over with its files
	// turn has room for one uploader, since all share one limit on bytes per second.
	turn  chan struct{}
	disks unreadable
}

// Upload starts uploading the snapshots of a run that are taken from now on. earlier has the
// statistics of uploads by earlier processes.
func (s *Store) Upload(source Source, p pace.Uploads, earlier report.Snapshots) *Uploads {
	done := mirror.Summary{}
	if earlier.Remote != nil {
		done = *earlier.Remote
	}
	u := &Uploads{
		store: *s, source: source, indexes: source.Writer.NewIndexes(), Uploader: mirror.Start("a snapshot", done, s.Log),
		pace: p, latest: done.Step, turn: make(chan struct{}, 1), disks: unreadable{dirs: source.Dirs},
	}
	if jobparts.Prioritized(s.Job) {
		u.Priority = u.savesRows(earlier.Priority)
	}
	return u
}

// Report fills in what has happened to the snapshots.
func (u *Uploads) Report(s *report.Snapshots) {
	s.Remote, s.Priority = nil, nil
	if u != nil {
		done := u.Summary()
		s.Remote, s.Priority = &done, u.Priority.Summary()
	}
}

// PriorityBytes returns the most memory that priority saves have taken.
func (u *Uploads) PriorityBytes() int64 {
	if u == nil {
		return 0
	}
	return u.Priority.MostBytes()
}

// TableLost fails with a *modeldir.LostError if uploads have failed twice to read the same file of
// the table.
func (u *Uploads) TableLost() error {
	if u == nil {
		return nil
	}
	return u.disks.tableLost()
}

// takeTurn waits until nothing else is being uploaded.
func (u *Uploads) takeTurn(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (u *Uploads) endTurn() { <-u.turn }

// Stop ends all uploads and releases all files.
func (u *Uploads) Stop() {
	if u != nil {
		u.Priority.Stop()
		u.Uploader.Stop()
		_ = u.indexes.Close() // the files have no names
	}
}

// Last uploads the last snapshot of a run that is told to stop, nil if it has none, and waits for
// the upload.
func (u *Uploads) Last(ctx context.Context, last *Snapshot) {
	if u == nil {
		return
	}
	u.Priority.Stop() // the last snapshot has all rows
	held := last == nil || last.Record.Step == u.latest || u.handOver(last)
	log, uri := u.store.Log, u.store.Job.Snapshots.Remote
	log.Info("waiting until the last snapshot is uploaded", "remote", uri)
	if done := u.Finish(ctx); !held || !done {
		reason := u.Summary().Error
		if ctx.Err() != nil {
			reason = "the time of snapshots.on_stop_seconds is over"
		}
		log.Warn("the last snapshot could not be uploaded; it is only on this machine", "remote", uri, "reason", reason)
	}
}

// Snapshot is a snapshot of a run on this machine.
type Snapshot struct {
	Record     runstate.Record
	Data       []byte // Record, set when the snapshot is complete
	Quarantine int64  // length of the file of bad rows
	Upload     bool   // upload the snapshot when it is complete
}

// Fixed decides whether to upload a snapshot that was fixed but is not complete yet.
func (u *Uploads) Fixed(x *Snapshot) {
	if u == nil {
		return
	}
	s := u.Summary()
	took := s.Last()
	if pays := u.pace.FullPays(took); pays != u.full {
		u.full = pays
		if pays {
			u.store.Log.Info("partial recovery is not worthwhile at present, since recovery.max_lost_samples would require uploads this often; if a directory is lost, the whole run goes back to a snapshot",
				"every", u.pace.Partial, "upload_seconds", s.LastSeconds, "every_with_full_recovery", u.pace.Full(took).Round(time.Second))
		}
	}
	// If the last attempt has failed, the newest snapshot replaces the waiting one.
	x.Upload = s.Error != "" || u.pace.Due(time.Now(), took)
	u.Priority.SnapshotFixed(x.Upload)
}

// Rows sets the number of rows of the table in the newest snapshot.
func (u *Uploads) Rows(n int64) {
	if u != nil {
		u.Priority.SnapshotHas(n)
	}
}

// Complete hands over a complete snapshot, if it is to be uploaded.
func (u *Uploads) Complete(x *Snapshot) {
	switch {
	case u == nil:
	case x.Upload:
		u.handOver(x)
	default:
		u.pace.Skip()
		u.Priority.SnapshotSaved(x.Record.Step)
	}
}

// handOver hands over a snapshot, and reports whether it did. If its files cannot be opened, the
// next snapshot is uploaded, or this one if it is the last.
func (u *Uploads) handOver(s *Snapshot) bool {
	x := &s.Record
	files, err := u.source.Writer.HoldRun(x.DenseFiles(), u.source.Table, x.TableSnapshots(), u.reportFiles(s))
	if err != nil {
		u.Failed(x.Step, err)
		return false
	}
	u.pace.Began(time.Now())
	u.latest = x.Step
	step, data := x.Step, s.Data
	u.Offer(&mirror.Snapshot{
		Step: step,
		Upload: func(ctx context.Context) (*remote.Published, error) {
			if err := u.source.Arrived(ctx); err != nil { // it may have to read files that have not arrived
				return nil, err
			}
			if err := u.takeTurn(ctx); err != nil {
				return nil, err
			}
			defer u.endTurn()
			done, err := u.upload(ctx, step, files, data)
			u.disks.note(err)
			return done, err
		},
		Release: files.Close,
	})
	return true
}

// reportFiles returns the reports of the run, with their lengths when the snapshot was fixed.
func (u *Uploads) reportFiles(s *Snapshot) []modelfiles.RunReport {
	job, w, x := u.store.Job, u.source.Writer, s.Record.Reports
	paths := report.Paths(job)
	out := []modelfiles.RunReport{
		{Path: report.Staged(w, job.Output.ModelDir, paths["metrics"]), Bytes: x.Metrics},
		{Path: w.Report(report.QuarantineName), Bytes: s.Quarantine},
	}
	if x.EventFile != "" {
		dir := report.Staged(w, job.Output.ModelDir, paths["tensorboard"])
		out = append(out, modelfiles.RunReport{Path: filepath.Join(dir, x.EventFile), Bytes: x.Events})
	}
	return out
}

func (u *Uploads) upload(ctx context.Context, step int64, files *modelfiles.RunFiles, record []byte) (*remote.Published, error) {
	d, err := u.store.openPresent("uploading a snapshot")
	if err != nil {
		return nil, err
	}
	if err := files.WriteIndexes(u.indexes); err != nil {
		return nil, err
	}
	p := u.store.publication(u.source.Identity, remote.Snapshot, step, record)
	p.Files = transfer.Locals(files.Files)
	return d.Publish(ctx, p)
}
