package trainer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aibox/internal/errkind"
	"aibox/trainer/jobsource"
	"aibox/trainer/mirror"
	"aibox/trainer/modeldir"
	"aibox/trainer/pace"
	"aibox/trainer/prioritysaves"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// With snapshots.remote, the newest snapshots of a run are also in a remote directory, from
// which another machine goes on with the run. It is uploaded in the background (package
// mirror); what fails there delays it and never the training, unless files of the table cannot be read. When the model is committed,
// and published if it is to be, the snapshots are removed.

// keepRemoteSnapshots is how many snapshots of a run stay there: the one before the newest
// is for the case that a file of that is damaged.
const keepRemoteSnapshots = 2

// uploads uploads the snapshots of a run. The methods of a nil uploads do nothing.
type uploads struct {
	run     *run
	indexes *modeldir.Indexes
	*mirror.Uploader
	pace   pace.Uploads
	full   bool  // full recovery pays, although the job asks for partial recovery
	latest int64 // step of the last snapshot that was handed over
	// turn has room for whoever uploads, since the limit on bytes in a second is one.
	turn     chan struct{}
	priority *prioritysaves.Saves // nil: there are none
	disks    diskReads
}

// diskReads are what uploads could not read of the table on this machine. A bad block would keep all snapshots
// from being uploaded from then on.
type diskReads struct {
	dirs []string // of the table; nil: it is in the model directory, and would not be recovered

	mu     sync.Mutex
	failed []string // files, or directories whose files cannot be opened
	lost   error    // one of them has failed twice, as training would say it; nil: none has
}

// note takes note of why an upload has failed.
func (d *diskReads) note(err error) {
	var lost *modeldir.LostError
	if !errors.As(modeldir.TableFailed(d.dirs, err), &lost) {
		return
	}
	at := lost.Unreadable()
	for _, l := range lost.Lost {
		if len(at) == 0 {
			at = append(at, l.Dir)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range at {
		if slices.Contains(d.failed, path) {
			d.lost = lost
		}
		d.failed = append(d.failed, path)
	}
}

// tableLost fails with a *modeldir.LostError if uploads have failed twice to read the same file of the
// table.
func (u *uploads) tableLost() error {
	if u == nil {
		return nil
	}
	u.disks.mu.Lock()
	defer u.disks.mu.Unlock()
	return u.disks.lost
}

// upload begins to upload the snapshots that are taken from now on.
func (s *snapshots) upload() {
	if s.run.job.Snapshots.Remote == "" || !s.on() || s.run.final != nil {
		return
	}
	earlier := mirror.Summary{}
	if s.summary.Remote != nil {
		earlier = *s.summary.Remote
	}
	s.uploads = &uploads{
		run: s.run, indexes: s.run.models.writer.NewIndexes(), Uploader: mirror.Start("a snapshot", earlier, s.run.log),
		pace: pace.NewUploads(s.run.job, &s.pace), latest: earlier.Step, turn: make(chan struct{}, 1),
		disks: diskReads{dirs: s.run.table.dirs},
	}
	s.uploads.priority = s.uploads.newPrioritySaves(s.summary.Priority)
	s.run.opts.Status.Uploads(s.uploads.Uploader)
}

// lastUpload is how long the last upload took; 0: there was none.
func lastUpload(s *mirror.Summary) time.Duration {
	return time.Duration(s.LastSeconds * float64(time.Second))
}

func (u *uploads) summary() *mirror.Summary {
	if u == nil {
		return nil
	}
	s := u.Summary()
	return &s
}

func (u *uploads) prioritySummary() *mirror.Summary {
	if u == nil {
		return nil
	}
	return u.priority.Summary()
}

// priorityBytes is the most memory that priority saves have taken.
func (u *uploads) priorityBytes() int64 {
	if u == nil {
		return 0
	}
	return u.priority.MostBytes()
}

// takeTurn waits until nothing else is being uploaded.
func (u *uploads) takeTurn(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (u *uploads) endTurn() { <-u.turn }

func (u *uploads) stop() {
	if u != nil {
		u.priority.Stop()
		u.Stop()
		_ = u.indexes.Close() // they have no names
	}
}

// finish uploads the last snapshot of a run that is told to stop, nil if it has none, and waits
// for it.
func (u *uploads) finish(ctx context.Context, last *image) {
	if u == nil {
		return
	}
	u.priority.Stop() // the last snapshot has all rows
	if last != nil && last.resume.Step != u.latest {
		u.handOver(last)
	}
	u.run.log.Info("waiting until the last snapshot is uploaded", "remote", u.run.job.Snapshots.Remote)
	if !u.Finish(ctx) {
		u.run.log.Warn("the last snapshot could not be uploaded; it is on this machine alone", "remote", u.run.job.Snapshots.Remote)
	}
}

// fixed decides whether a snapshot is uploaded that was fixed and is not complete yet.
func (u *uploads) fixed(im *image) {
	if u == nil {
		return
	}
	s := u.Summary()
	took := lastUpload(&s)
	if pays := u.pace.FullPays(took); pays != u.full {
		u.full = pays
		if pays {
			u.run.log.Info("partial recovery does not pay at present, since recovery.max_lost_samples would take an upload so often; after a loss, the whole run goes back",
				"every", u.pace.Partial, "upload_seconds", s.LastSeconds, "every_with_full_recovery", u.pace.Full(took).Round(time.Second))
		}
	}
	// Where the last attempt has failed, the newest snapshot takes the place of what waits.
	im.upload = s.Error != "" || u.pace.Due(time.Now(), took)
	u.priority.SnapshotFixed(im.upload)
}

// rows says how many rows the table has.
func (u *uploads) rows(n int64) {
	if u != nil {
		u.priority.SnapshotHas(n)
	}
}

// offer hands over a snapshot that is complete, if it is to be uploaded.
func (u *uploads) offer(im *image) {
	switch {
	case u == nil:
	case im.upload:
		u.handOver(im)
	default:
		u.pace.Skip()
		u.priority.SnapshotSaved(im.resume.Step)
	}
}

func (u *uploads) handOver(im *image) {
	x := &im.resume
	u.pace.Began(time.Now())
	u.latest = x.Step
	files, err := u.run.models.writer.HoldRun(x.DenseFiles(), u.run.table.Table, x.TableSnapshots(), u.run.reportFiles(x, im.quarantine))
	if err != nil {
		u.run.log.Warn("a snapshot cannot be uploaded; training goes on", "step", x.Step, "error", err)
		return
	}
	u.Offer(&mirror.Snapshot{
		Step: x.Step,
		Upload: func(ctx context.Context) (*remote.Published, error) {
			if err := u.run.arriving.wait(ctx); err != nil { // it may have to read the files that have not arrived
				return nil, err
			}
			if err := u.takeTurn(ctx); err != nil {
				return nil, err
			}
			defer u.endTurn()
			done, err := u.uploadSnapshot(ctx, x.Step, files, im.data)
			u.disks.note(err)
			return done, err
		},
		Release: files.Close,
	})
}

// reportFiles are the reports of a run, as long as they were when a snapshot was fixed.
func (r *run) reportFiles(x *runstate.Record, quarantine int64) []modeldir.RunReport {
	w, paths := r.models.writer, report.Paths(r.job)
	out := []modeldir.RunReport{
		{Path: report.Staged(w, r.job.Output.ModelDir, paths["metrics"]), Bytes: x.Reports.Metrics},
		{Path: w.Report(report.QuarantineName), Bytes: quarantine},
	}
	if x.Reports.EventFile != "" {
		dir := report.Staged(w, r.job.Output.ModelDir, paths["tensorboard"])
		out = append(out, modeldir.RunReport{Path: filepath.Join(dir, x.Reports.EventFile), Bytes: x.Reports.Events})
	}
	return out
}

// outsideReport is where a report that is outside of the model directory belongs.
func (r *run) outsideReport(name string) string {
	paths := report.Paths(r.job)
	if name == filepath.Base(paths["metrics"]) {
		return paths["metrics"]
	}
	if paths["tensorboard"] == "" {
		return ""
	}
	return filepath.Join(paths["tensorboard"], name)
}

func (u *uploads) uploadSnapshot(ctx context.Context, step int64, files *modeldir.RunFiles, resume []byte) (*remote.Published, error) {
	r := u.run
	d, err := r.presentSnapshots("uploading a snapshot")
	if err != nil {
		return nil, err
	}
	if err := files.WriteIndexes(u.indexes); err != nil {
		return nil, err
	}
	p := remote.Publication{
		Job: r.job.PlainName(), Owner: r.snapshotOwner(), Identity: sha256Of(resume), AiboxVersion: r.opts.Version,
		Kind: remote.Snapshot, Run: r.runKey(), Step: step, Model: resume, Keep: keepRemoteSnapshots,
	}
	for _, f := range files.Files {
		p.Files = append(p.Files, remote.Local{Name: f.Name, Bytes: f.Bytes, Unique: f.Unique, Open: func() (remote.ReaderAt, error) { return f.Open() }})
	}
	return d.Publish(ctx, p)
}

func sha256Of(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func (r *run) remoteSnapshots(doing string) (*remote.Directory, error) {
	return transfer.Open(r.data.Sources, r.job.Snapshots.Remote, int64(r.job.Output.RemoteBytesPerSecond), doing, r.log)
}

// presentSnapshots is remoteSnapshots where snapshots.remote has to exist: where what is there decides from
// where the run goes on, and where something is uploaded, which would otherwise lie beneath a file system
// that is not mounted.
func (r *run) presentSnapshots(doing string) (*remote.Directory, error) {
	return transfer.OpenPresent(r.data.Sources, r.job.Snapshots.Remote, int64(r.job.Output.RemoteBytesPerSecond), doing, r.log)
}

// snapshotOwner is the Owner of the run's snapshots in a remote directory.
func (r *run) snapshotOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + modeldir.RealDir(r.job.Output.ModelDir)
}

// runKey is equal for runs of which one goes on with the snapshots of the other.
func (r *run) runKey() string {
	var id runstate.Identity
	_ = json.Unmarshal(r.identity, &id) // identify wrote it
	return sha256Of([]byte(id.Job + "\n" + id.Night))
}

// fetchSnapshot brings the newest snapshot of this job from snapshots.remote to this
// machine, as what an interrupted run left, and reports whether there is one. It fails if the
// remote directory cannot be read: whether hours of training can be saved is not known then,
// and the user, not the run, decides to do without them (--fresh).
func (r *run) fetchSnapshot(ctx context.Context) (bool, error) {
	if r.job.Snapshots.Remote == "" || !r.snapshots.on() || r.opts.Fresh {
		return false, nil
	}
	uri := r.job.Snapshots.Remote
	d, all, err := r.listSnapshots(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if errors.Is(err, transfer.ErrAbsent) && r.loss == nil && r.hasModels() {
		r.log.Warn("snapshots.remote does not exist; if it is on a file system that is not mounted, a snapshot of another machine is not found; those of this run are uploaded when it is there", "remote", uri)
		return false, nil
	}
	if err == nil && len(all) == 0 && r.loss != nil && r.loss.uploaded && transfer.MountedPath(r.data.Sources, uri) != "" {
		err = errors.New("the interrupted run has uploaded snapshots there, but there is none: is the file system mounted?")
	}
	if err != nil {
		return false, errkind.As(errkind.IO, fmt.Errorf("snapshots.remote %s cannot be read, so it is not known whether it has a snapshot from which this job goes on: %w; start the job again when it can be read, or start over with --fresh", uri, err))
	}
	if len(all) == 0 {
		r.log.Info("snapshots.remote has no snapshot", "remote", uri)
	}
	for _, m := range all {
		if m.Job != r.job.PlainName() {
			continue
		}
		ok, err := r.mayGoOnFrom(m)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		err = r.restoreSnapshot(ctx, d, m)
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if errors.Is(err, modeldir.ErrLocked) {
			return false, err // another run, perhaps of the same job, goes on there
		}
		var lost *remote.DamagedError
		if !errors.As(err, &lost) && !damaged(err) {
			if r.loss != nil && modeldir.DiskLost(err) {
				return false, fmt.Errorf("the snapshot in snapshots.remote cannot be restored to this machine, on which a directory of the table is lost: %w; replace the disk, or take its directory out of sparse_table.dirs", err)
			}
			return false, errkind.As(errkind.IO, fmt.Errorf("snapshot %d of this job in snapshots.remote %s cannot be brought to this machine: %w; start the job again, which goes on with what has arrived, or start over with --fresh", m.Number, uri, err))
		}
		r.log.Error("a snapshot in snapshots.remote is damaged; the one before it is taken if there is one", "remote", uri, "snapshot", m.Number, "error", err)
	}
	return false, nil
}

// hasModels reports whether there are models of earlier runs on this machine, so that the job does
// not begin its chain here.
func (r *run) hasModels() bool {
	c, _ := r.models.chain.Latest() // whoever starts from it says what is wrong
	return c != nil || r.models.chain.Exists()
}

// listSnapshots lists snapshots.remote.
func (r *run) listSnapshots(ctx context.Context) (d *remote.Directory, all []*remote.Manifest, err error) {
	if d, err = r.presentSnapshots("restoring a snapshot"); err != nil {
		return nil, nil, err
	}
	var faults []error
	err = transfer.WhileServerAway(ctx, time.Duration(r.job.Data.HDFS.RetryMs)*time.Millisecond, r.log, func() (err error) {
		all, faults, err = d.Snapshots(ctx)
		return err
	})
	for _, fault := range faults {
		r.log.Warn("a snapshot in snapshots.remote cannot be read", "remote", d.URI(), "error", fault)
	}
	return d, all, err
}

// mayGoOnFrom reports whether this run can go on from a snapshot.
func (r *run) mayGoOnFrom(m *remote.Manifest) (bool, error) {
	_, id, err := runstate.Decode(m.Model)
	var reasons []string
	if err != nil {
		reasons = []string{err.Error()}
	} else if reasons, err = r.differences(id); err != nil {
		return false, err
	}
	if len(reasons) > 0 {
		r.log.Info("a snapshot in snapshots.remote is not used, since this job differs from its", "snapshot", m.Number, "owner", m.Owner, "differences", strings.Join(reasons, "; "))
	}
	return len(reasons) == 0, nil
}

// restoreSnapshot brings a snapshot to this machine, as what an interrupted run left.
func (r *run) restoreSnapshot(ctx context.Context, d *remote.Directory, m *remote.Manifest) error {
	var survivors map[string]string
	what := "there is no snapshot of an interrupted run on this machine; the newest in snapshots.remote is restored"
	if r.loss != nil {
		survivors, what = r.loss.survivors, "the newest snapshot in snapshots.remote is restored"
	}
	r.log.Info(what, "remote", d.URI(), "snapshot", m.Number, "owner", m.Owner, "bytes", m.Bytes())
	return r.restoreSnapshotTo(ctx, d, m, r.job.Output.ModelDir, survivors)
}

// restoreSnapshotTo brings a snapshot to the model directory dir. Reports that are outside of
// the job's model directory are put to their places if dir is that.
func (r *run) restoreSnapshotTo(ctx context.Context, d *remote.Directory, m *remote.Manifest, dir string, survivors map[string]string) (err error) {
	if err := d.Whole(ctx, m); err != nil { // before anything is fetched
		return err
	}
	to, err := modeldir.RestoreBeside(dir, m.ID, transfer.DirsFor(m, r.job.SparseTable.Dirs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	outside := r.outsideReport
	if dir != r.job.Output.ModelDir {
		outside = func(string) string { return "" }
	}
	begun := time.Now()
	late := m.ID != r.distrusted && dir == r.job.Output.ModelDir // training goes on before all is there
	brought, err := transfer.Bring(ctx, d, m, to, survivors, late, r.log)
	if err == nil {
		err = to.CommitRun(ctx, m.Model, outside)
	}
	var lost *remote.DamagedError
	if errors.As(err, &lost) || damaged(err) {
		err = errors.Join(err, to.Discard(), to.RemoveDiscarded())
	}
	if err == nil {
		r.restored = restored{d.URI(), m.Bytes(), brought.Moved, brought.Again, time.Since(begun).Seconds()}
		r.log.Info("the snapshot is restored", "fetched_bytes", brought.Moved, "bytes_on_this_machine", brought.Kept, "bytes_still_fetched", brought.Later, "seconds", r.restored.seconds)
	}
	return err
}

// forgetRemote removes the snapshots of a run whose model is committed.
func (r *run) forgetRemote(ctx context.Context) {
	uri := r.job.Snapshots.Remote
	if uri == "" || r.identity == nil {
		return
	}
	r.data.Sources = jobsource.New(r.job, r.log)
	err := func() (err error) {
		defer func() { err = errors.Join(err, r.data.Sources.Close()) }()
		d, err := r.remoteSnapshots("")
		if err != nil {
			return err
		}
		freed, err := d.RemoveSnapshots(ctx, r.job.PlainName(), r.snapshotOwner(), r.runKey())
		if freed > 0 {
			r.log.Info("the run's snapshots in snapshots.remote are removed", "remote", uri, "deleted_bytes", freed)
		}
		return err
	}()
	if err != nil {
		r.log.Warn("the run's snapshots in snapshots.remote could not be removed; the next run of the job on this machine removes them", "remote", uri, "error", err)
	}
}
