package trainer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// A table on several disks loses one of its directories with a disk. Then the run goes back
// to the last snapshot that is whole: that in snapshots.remote or, if there is none, to the
// model that it started from, which output.remote may have. That is full recovery (CPR,
// Maeng et al., MLSys 2021, §2.2): what was trained since is trained again, to the same
// bits. Files in the directories that are left are not fetched if they are what was
// uploaded.

// setbacks are the interruptions and losses of a run, and how it goes on after them.
type setbacks struct {
	resumed    []report.Resumption // after interruptions
	loss       *loss               // of a directory; nil: there is none, or the run goes on after it
	failed     *modeldir.LostError // has ended the run
	again      *loss               // because of that, for the run that begins next; nil: none does
	recoveries []report.Recovery   // after losses
	earlier    float64             // seconds that the run took before those
	startsOver func()              // logs why an interrupted run is not continued; nil: nothing to say

	arriving   *arriving      // nil: the run did not go on from a snapshot of snapshots.remote
	restored   report.Arrival // what was restored before training began
	refilled   bool           // lost rows have gone back: see partially
	distrusted string         // id of a snapshot in snapshots.remote whose files were found damaged
}

// loss is what a run has found lost, or what has ended the run before it in this process, until
// it goes on.
type loss struct {
	err *modeldir.LostError
	at  report.Resumption // of the run that ended, or else of the newest snapshot of an interrupted run; zero: a model has lost its table
	// snapshots says that the newest snapshot is not whole; survivors are the files that are
	// left of the table then.
	snapshots bool
	survivors map[string]string
	uploaded  bool // the run had a snapshot in snapshots.remote
}

// lostTable takes note of the loss of files of an interrupted run's table.
func (r *run) lostTable(lost *modeldir.LostError, x *runstate.Record) {
	if r.loss == nil {
		r.loss = &loss{err: lost, at: x.Place()}
	}
	r.loss.uploaded = x.Snapshots.Remote != nil && x.Snapshots.Remote.Step > 0
	r.loss.snapshots, r.loss.survivors = true, modeldir.Survivors(r.job.Output.ModelDir)
	r.log.Error("files of the table of an interrupted run are lost; the run goes back to the last snapshot that is whole", "step", x.Step, "trained_examples", x.Place().Examples, "error", lost)
}

// recovered takes note of how a run goes on after a loss.
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
	r.log.Error("after the loss of files of the table, training goes on; the model will be the same as without the loss", "lost", l.err.Error(), "from", from, "step", at.Step, "trained_examples", at.Examples, "examples_trained_again", rec.Again)
}

// checkPlaces fails if a new table cannot be made where a directory of one is lost. Then what the
// interrupted run has left is not deleted: the disk may come back.
func (r *run) checkPlaces() error {
	if r.loss == nil {
		return nil
	}
	if err := modeldir.CheckPlaces(r.job.SparseTable.Dirs); err != nil {
		return fmt.Errorf("%w, and a new table cannot be made either: %w; %s", r.loss.err, err, replaceDisk)
	}
	return nil
}

// snapshotSource is where the snapshot comes from with which the run goes on.
func (r *run) snapshotSource() string {
	if r.loss != nil && !r.loss.snapshots {
		return "the last snapshot on this machine"
	}
	return r.job.Snapshots.Remote
}

// beginning is what a run goes back to that begins anew.
func (r *run) beginning() string {
	if r.models.start == nil {
		return "a new model"
	}
	return r.models.start.Name
}

// wholePrevious makes sure that the table of the model that training.warm_start: latest
// stands for is whole. If it has lost files, it restores the same model from output.remote,
// or the newest one there that the job may start from. It reports whether it did. A model that is not
// the published one, since a night is trained again, is restored for this run alone.
func (r *run) wholePrevious(ctx context.Context, c *chain.Choice) (restored bool, err error) {
	p, err := modeldir.Open(c.Name)
	if err != nil {
		return false, nil // who opens it next says so
	}
	if c.Name != p.Dir {
		return false, r.wholeEarlier(ctx, p)
	}
	identity := p.Identity()
	lost, survivors := r.lossOf(ctx, p)
	if err := p.Close(); err != nil || lost == nil { // it may be deleted meanwhile
		return false, err
	}
	if r.job.Output.Remote == "" {
		return false, r.unusable(p, lost, "the job has no output.remote from which the model could be restored")
	}
	r.log.Error("the table of the model to start from has lost files; the model is restored from output.remote", "model", c.Name, "remote", r.job.Output.Remote, "error", lost)
	out, err := r.restoreBeside(ctx, survivors, func(m *modeldir.Manifest) bool { return m.Identity() == identity })
	var damaged *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &damaged) {
		r.log.Error("output.remote does not have that model as a whole; the newest other one there of an earlier run is taken: what was trained since is not in it", "remote", r.job.Output.Remote, "reason", err)
		out, err = r.restoreBeside(ctx, nil, func(m *modeldir.Manifest) bool { return m.Identity() != identity && r.models.chain.MayStartFrom(m) })
	}
	if err != nil {
		return false, fmt.Errorf("the model %s cannot be used (%w), nor restored: %w", c.Name, lost, errkind.As(errkind.IO, err))
	}
	if r.loss == nil {
		r.loss = &loss{err: lost}
	}
	r.log.Info("the model to start from is restored", "from", out.From, "model", modeldir.JoinName(out.ModelDir, out.Generation), "fetched_bytes", out.Moved)
	return true, nil
}

// wholeEarlier is wholePrevious for a model that is not published. It leaves r.models.previous as it is
// if the model p, which it closes, is whole.
func (r *run) wholeEarlier(ctx context.Context, p *modeldir.Model) error {
	start := r.models.chain.StartAt(p.Dir, &p.Manifest)
	whole, err := r.wholeNamed(ctx, p)
	if err != nil {
		return err
	}
	if whole == p {
		return p.Close()
	}
	r.models.start, r.models.previous = start, whole
	return nil
}

// wholeNamed returns the model that training.warm_start names, which is p, and which it closes if
// that is another one: if the table of p has lost files, the same model is restored from
// output.remote, for this run alone. In its place in a model directory nothing changes.
func (r *run) wholeNamed(ctx context.Context, p *modeldir.Model) (*modeldir.Model, error) {
	lost, survivors := r.lossOf(ctx, p)
	if lost == nil {
		return p, nil
	}
	identity, uri := p.Identity(), r.job.Output.Remote
	if err := p.Close(); err != nil {
		return nil, err
	}
	if uri == "" {
		return nil, r.unusable(p, lost, "the job has no output.remote from which the model could be restored")
	}
	r.log.Error("the table of the model to start from has lost files; the model is restored from output.remote for this run", "model", p.Name, "remote", uri, "error", lost)
	start, err := r.restoreStart(ctx, identity, survivors)
	var damaged *remote.DamagedError
	if errors.Is(err, remote.ErrNone) || errors.As(err, &damaged) {
		return nil, r.unusable(p, lost, fmt.Sprintf("%s does not have that model as a whole (%v)", uri, err))
	}
	if err != nil {
		return nil, fmt.Errorf("the model %s cannot be used (%w), nor restored: %w", p.Name, lost, errkind.As(errkind.IO, err))
	}
	if r.loss == nil {
		r.loss = &loss{err: lost}
	}
	return start, nil
}

// restoreStart restores a model from output.remote for this run alone.
func (r *run) restoreStart(ctx context.Context, identity string, survivors map[string]string) (*modeldir.Model, error) {
	scratch := r.startDir()
	if _, err := modeldir.Generations(scratch); !errors.Is(err, modeldir.ErrNoModel) { // of a process that was killed
		if err := modeldir.Remove(scratch); err != nil {
			return nil, err
		}
	}
	o := r.restoringTo(scratch)
	o.Accept, o.Survivors = func(m *modeldir.Manifest) bool { return m.Identity() == identity }, survivors
	out, err := transfer.RestoreWith(ctx, r.data.Sources, o)
	if err != nil {
		return nil, err
	}
	r.log.Info("the model to start from is restored", "from", out.From, "fetched_bytes", out.Moved)
	return modeldir.Open(scratch)
}

// startDir is where, in the model directory, a model is restored that only this run starts from.
func (r *run) startDir() string { return filepath.Join(r.job.Output.ModelDir, "start") }

// removeStart deletes the model that was restored for this run, if one was. The run's table has
// its rows, or there will be none.
func (r *run) removeStart() {
	p := r.models.previous
	if p == nil || p.Dir != r.startDir() {
		return
	}
	_ = p.Close() // it was only read
	r.removeLeftStart()
}

// removeLeftStart deletes the model that was restored for a run, also for one that was killed then.
func (r *run) removeLeftStart() {
	dir := r.startDir()
	if _, err := modeldir.Generations(dir); errors.Is(err, modeldir.ErrNoModel) {
		return
	}
	if err := modeldir.Remove(dir); err != nil {
		r.log.Warn("the model that was restored to start from could not be deleted; it takes space on disk", "dir", dir, "error", err)
	}
}

// lossOf says what the table of a model has lost, and which files are left of it; nil: nothing.
func (r *run) lossOf(ctx context.Context, p *modeldir.Model) (lost *modeldir.LostError, survivors map[string]string) {
	if fault := faultOfArriving(p); fault != nil {
		return fault, nil
	}
	if !errors.As(p.CheckTable(ctx, r.log), &lost) {
		return nil, nil // whoever opens it says what else is wrong
	}
	return lost, p.Survivors()
}

// unusable is the error for a model to start from whose table has lost files. why says why it
// cannot be restored.
func (r *run) unusable(p *modeldir.Model, lost error, why string) error {
	return fmt.Errorf("the model %s cannot be used: %w; mount the missing file system. If it is gone for good: %s; name another model in training.warm_start, or give an empty text to begin with a new one", p.Name, errkind.As(errkind.IO, lost), why)
}

// faultOfArriving says why the files of a model's table that have not all arrived never will; nil:
// they may, or are there.
func faultOfArriving(p *modeldir.Model) *modeldir.LostError {
	t := p.Arriving()
	if t == nil {
		return nil
	}
	said, err := remote.AnnouncedIn(t.Records...)
	if err == nil && said != nil {
		err = said.Fault()
	}
	if err == nil {
		return nil
	}
	return &modeldir.LostError{Dirs: t.Dirs, Err: err}
}

// restoreBeside restores a model from output.remote to the job's model directory.
func (r *run) restoreBeside(ctx context.Context, survivors map[string]string, accept func(*modeldir.Manifest) bool) (*transfer.Restored, error) {
	o := r.restoringTo(r.job.Output.ModelDir)
	o.Job, o.Accept, o.Beside, o.Survivors = r.job.PlainName(), accept, true, survivors
	return transfer.RestoreWith(ctx, r.data.Sources, o)
}
