package remotesnapshots

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// Keep is how many snapshots of a run are kept there: the one before the newest is a reserve if a
// file of the newest is damaged.
const Keep = 2

// Store is the snapshots.remote of a run's job.
type Store struct {
	Job     *configs.Job
	Sources *source.Sources
	Version string // of the binary
	Log     *slog.Logger
	// Differences returns why the run cannot resume another one.
	Differences func(*runstate.Identity) ([]string, error)
}

func (s *Store) open(doing string) (*remote.Directory, error) {
	return transfer.Open(s.Sources, s.Job.Snapshots.Remote, int64(s.Job.Output.RemoteBytesPerSecond), doing, s.Log)
}

// openPresent is open for cases in which snapshots.remote must exist: when its contents decide
// where the run resumes, and for uploads, which would otherwise be hidden below a file system that
// is not mounted.
func (s *Store) openPresent(doing string) (*remote.Directory, error) {
	return transfer.OpenPresent(s.Sources, s.Job.Snapshots.Remote, int64(s.Job.Output.RemoteBytesPerSecond), doing, s.Log)
}

// list lists all snapshots, including those of other jobs. uploaded says that the run has uploaded
// some: a directory on a mounted file system that has none is then probably an empty mount point.
func (s *Store) list(ctx context.Context, uploaded bool) (d *remote.Directory, all []*remote.Manifest, err error) {
	if d, err = s.openPresent("restoring a snapshot"); err != nil {
		return nil, nil, err
	}
	var faults []error
	err = transfer.WhileServerAway(ctx, time.Duration(s.Job.Data.HDFS.RetryMs)*time.Millisecond, s.Log, func() (err error) {
		all, faults, err = d.Snapshots(ctx)
		return err
	})
	for _, fault := range faults {
		s.Log.Warn("a snapshot in snapshots.remote cannot be read", "remote", d.URI(), "error", fault)
	}
	if err == nil && len(all) == 0 && uploaded && transfer.MountedPath(s.Sources, s.Job.Snapshots.Remote) != "" {
		err = errors.New("the interrupted run has uploaded snapshots there, but there is none: is the file system mounted?")
	}
	return d, all, err
}

// unknown returns the error of a run that does not know whether there is a snapshot, since list has
// failed.
func (s *Store) unknown(err error) error {
	return errkind.As(errkind.IO, fmt.Errorf("snapshots.remote %s cannot be read, so it is not known whether it has a snapshot from which this job could resume: %w; start the job again when it can be read, or start over with --fresh", s.Job.Snapshots.Remote, err))
}

// usable reports whether a manifest is of this job and describes something that this run can resume
// from.
func (s *Store) usable(m *remote.Manifest) (bool, error) {
	if m.Job != s.Job.PlainName() {
		return false, nil
	}
	x, id, err := runstate.Decode(m.Model)
	if err != nil {
		s.otherFormat(m, x.Version, err)
		return false, nil
	}
	reasons, err := s.Differences(id)
	if err != nil {
		return false, err
	}
	if len(reasons) > 0 {
		s.Log.Info("a snapshot in snapshots.remote is not used, since this job differs from the one that saved it", "snapshot", m.Number, "owner", m.Owner, "differences", strings.Join(reasons, "; "))
	}
	return len(reasons) == 0, nil
}

// otherFormat logs why a snapshot of another version of aibox is not used.
func (s *Store) otherFormat(m *remote.Manifest, version string, err error) {
	s.Log.Warn("a snapshot in snapshots.remote has the format of another version of aibox, and is not used", "snapshot", m.Number, "owner", m.Owner, "version", version, "error", err)
}

// publication returns the publication of a snapshot or priority save of the run with the given
// identity. model is its description.
func (s *Store) publication(identity []byte, kind remote.Kind, step int64, model []byte) remote.Publication {
	return remote.Publication{
		Job: s.Job.PlainName(), Owner: s.owner(), Identity: fmt.Sprintf("%x", sha256.Sum256(model)), AiboxVersion: s.Version,
		Kind: kind, Run: runKey(identity), Step: step, Model: model, Keep: Keep,
	}
}

// owner returns the Owner of the run's snapshots in a remote directory.
func (s *Store) owner() string { return transfer.OwnerOf(s.Job.Output.ModelDir) }

func runKey(identity []byte) string {
	var id runstate.Identity
	_ = json.Unmarshal(identity, &id) // the run wrote it
	return id.Key()
}

// Remove removes the snapshots of a run whose model is committed and whose Sources are closed, and
// those left by the runs that made the models before it.
func (s *Store) Remove(ctx context.Context, identity []byte) {
	last := *s
	last.Sources = jobsource.New(s.Job, s.Log)
	uri := s.Job.Snapshots.Remote
	freed, err := last.remove(ctx, identity)
	if err = errors.Join(err, last.Sources.Close()); err != nil {
		s.Log.Warn("the run's snapshots in snapshots.remote could not be removed; the next run of the job in this model directory, or from this model, removes them, and other runs once they are a week old", "remote", uri, "error", err)
	}
	if freed > 0 {
		s.Log.Info("the run's snapshots in snapshots.remote are removed", "remote", uri, "deleted_bytes", freed)
	}
}

func (s *Store) remove(ctx context.Context, identity []byte) (freed int64, err error) {
	d, err := s.open("")
	if err != nil {
		return 0, err
	}
	owner, run, made := s.owner(), runKey(identity), modeldir.Unread(s.Job.Output.ModelDir)
	return d.RemoveSnapshots(ctx, s.Job.PlainName(), func(m *remote.Manifest) bool {
		return m.Owner == owner || m.Run == run || made != nil && isOfEarlier(m, made)
	})
}

// isOfEarlier reports whether a snapshot is of the run that made one of made's ancestors in another
// model directory: it could not be removed when that model was committed.
func isOfEarlier(m *remote.Manifest, made *modeldir.Model) bool {
	_, id, err := runstate.Decode(m.Model)
	if err != nil {
		return false
	}
	job := fmt.Sprintf("%x", sha256.Sum256([]byte(id.Job)))
	for dir, g := range modeldir.MadeFrom(made.Dir, &made.Manifest) {
		if m.Owner == transfer.OwnerOf(dir) && id.Night == g.Manifest.OfNight() && job == g.Manifest.JobSHA256 {
			return true
		}
	}
	return false
}
