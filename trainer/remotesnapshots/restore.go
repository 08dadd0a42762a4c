package remotesnapshots

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// Before is what a run knows of the run before it when it looks for a snapshot of that one.
type Before struct {
	Lost           bool              // files of that run's table are lost on this machine
	Uploaded       bool              // that run has uploaded snapshots
	RemainingFiles map[string]string // the remaining files of its table
	DamagedID      string            // ID of a snapshot whose files were found damaged
	Models         func() bool       // reports whether this machine has models of earlier runs, so that the job's chain does not begin here
}

// Fetch brings the newest snapshot of this job to this machine, in the form that an interrupted run
// leaves, and returns what it fetched; nil if there is no snapshot. It fails if the remote
// directory cannot be read: then it is unknown whether hours of training can be saved, and the
// user, not the run, decides to give them up (--fresh).
func (s *Store) Fetch(ctx context.Context, before Before) (*report.Arrival, error) {
	uri := s.Job.Snapshots.Remote
	d, all, err := s.list(ctx, before.Uploaded)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, transfer.ErrAbsent) && !before.Lost && before.Models() {
		s.Log.Warn("snapshots.remote does not exist; if it is on a file system that is not mounted, a snapshot of another machine is not found; those of this run are uploaded once it exists", "remote", uri)
		return nil, nil
	}
	if err != nil {
		return nil, s.unknown(err)
	}
	if len(all) == 0 {
		s.Log.Info("snapshots.remote has no snapshot", "remote", uri)
	}
	what := "there is no snapshot of an interrupted run on this machine; the newest in snapshots.remote is restored"
	if before.Lost {
		what = "the newest snapshot in snapshots.remote is restored"
	}
	for _, m := range all {
		if ok, err := s.usable(m); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		s.Log.Info(what, "remote", d.URI(), "snapshot", m.Number, "owner", m.Owner, "bytes", m.Bytes())
		fetched, err := s.restore(ctx, d, m, s.Job.Output.ModelDir, before.RemainingFiles, m.ID != before.DamagedID)
		if err == nil {
			return fetched, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, modeldir.ErrLocked) {
			return nil, err // another run, perhaps of the same job, continues there
		}
		if errors.Is(err, errkind.ErrNewer) {
			s.otherFormat(m, m.AiboxVersion, err)
			continue
		}
		var lost *remote.DamagedError
		if !errors.As(err, &lost) && !modeldir.Damaged(err) {
			if before.Lost && modeldir.DiskLost(err) {
				return nil, fmt.Errorf("the snapshot in snapshots.remote cannot be restored to this machine, on which a directory of the table is lost: %w; replace the disk, or take its directory out of sparse_table.dirs", err)
			}
			return nil, errkind.As(errkind.IO, fmt.Errorf("snapshot %d of this job in snapshots.remote %s cannot be fetched: %w; start the job again, which keeps what has arrived, or start over with --fresh", m.Number, uri, err))
		}
		s.Log.Error("a snapshot in snapshots.remote is damaged; the one before it is used if there is one", "remote", uri, "snapshot", m.Number, "error", err)
	}
	return nil, nil
}

// restore brings a snapshot to the model directory dir, in the form that an interrupted run leaves,
// and uses remaining files there. late says that training resumes before everything has arrived. If
// dir is the job's model directory, reports outside it are put in their places.
func (s *Store) restore(ctx context.Context, d *remote.Directory, m *remote.Manifest, dir string, remaining map[string]string, late bool) (_ *report.Arrival, err error) {
	if err := d.Whole(ctx, m); err != nil { // before anything is fetched
		return nil, err
	}
	to, err := modeldir.RestoreBeside(dir, m.ID, transfer.DirsFor(m, s.Job.SparseTable.Dirs))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	begun := time.Now()
	fetched, err := transfer.FetchFiles(ctx, d, m, to, remaining, late, s.Log)
	if err == nil {
		err = to.CommitRun(ctx, m.Model, func(name string) string {
			if dir != s.Job.Output.ModelDir {
				return ""
			}
			return s.outsideReport(name)
		})
	}
	var lost *remote.DamagedError
	if errors.As(err, &lost) || modeldir.Damaged(err) || errors.Is(err, errkind.ErrNewer) {
		err = errors.Join(err, to.Discard(), to.RemoveDiscarded())
	}
	if err != nil {
		return nil, err
	}
	seconds := time.Since(begun).Seconds()
	s.Log.Info("the snapshot is restored", "fetched_bytes", fetched.Moved, "bytes_on_this_machine", fetched.Kept, "bytes_still_fetched", fetched.Later, "seconds", seconds)
	return &report.Arrival{Remote: d.URI(), Bytes: m.Bytes(), FetchedBytes: fetched.Moved, FetchedAgain: fetched.Again, UsableSeconds: seconds, WholeSeconds: seconds}, nil
}

// outsideReport returns the place of a report outside the model directory.
func (s *Store) outsideReport(name string) string {
	paths := report.Paths(s.Job)
	if name == filepath.Base(paths["metrics"]) {
		return paths["metrics"]
	}
	if paths["tensorboard"] == "" {
		return ""
	}
	return filepath.Join(paths["tensorboard"], name)
}

// Restored is a snapshot in a directory of its own. Only its rows are used.
type Restored struct {
	Name     string // of the snapshot
	Step     int64
	Examples int64
	Arrival  report.Arrival
	// Table returns options to open its table for reading, with half of the job's memory.
	Table func() (sparsetable.Options, error)
}

// RestoreUntil restores the run's newest complete snapshot up to a step to the directory dir; nil
// if there is none. uploaded says that the run has uploaded snapshots.
func (s *Store) RestoreUntil(ctx context.Context, step int64, uploaded bool, dir string, remaining map[string]string) (*Restored, error) {
	d, all, err := s.list(ctx, uploaded)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, s.unknown(err)
	}
	for _, m := range all {
		if ok, err := s.usable(m); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		at, _, err := runstate.Decode(m.Model)
		if err != nil || at.Step > step {
			continue
		}
		fetched, err := s.restore(ctx, d, m, dir, remaining, false)
		var damaged *remote.DamagedError
		if errors.As(err, &damaged) {
			s.Log.Error("a snapshot in snapshots.remote is damaged; the one before it is used if there is one", "snapshot", m.Number, "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		table := func() (sparsetable.Options, error) {
			o, err := modeldir.InterruptedTable(dir, jobparts.TableOptions(s.Job))
			o.Logger, o.ReadOnly, o.SnapshotID, o.MustExist = s.Log, true, at.Snapshot, true
			o.MemoryBytes, o.SSD.Brief = o.MemoryBytes/2, true
			return o, err
		}
		return &Restored{fmt.Sprintf("%s@%d", d.URI(), m.Number), at.Step, at.Progress().Examples, *fetched, table}, nil
	}
	return nil, nil
}
