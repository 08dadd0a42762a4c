package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// A finished model is published to output.remote, a directory on HDFS or a mounted file
// system, from which any machine can restore it. The model is committed before that, so a
// remote directory that fails costs its copy and never the model.

// PublishOptions say what Publish does.
type PublishOptions struct {
	Model          string // model directory, or one of its generations
	Remote         string // URI; "": output.remote of the model's job
	BytesPerSecond int64  // 0: that of the model's job
	Options
}

// Publish brings a model to a remote directory, unless it is there. The model of a model
// directory is the newest one there after that, and those from which it was made are
// published before it, as far as they are lacking.
func Publish(ctx context.Context, o PublishOptions) (*remote.Published, error) {
	o.ensureDefaults()
	m, err := modeldir.Open(o.Model)
	if err != nil {
		return nil, err
	}
	out, err := publishModel(ctx, m, &o)
	return out, errors.Join(err, m.Close())
}

func publishModel(ctx context.Context, m *modeldir.Model, o *PublishOptions) (out *remote.Published, err error) {
	job, _, err := savedJob(m, configs.LoadOptions{})
	if err != nil {
		return nil, err
	}
	uri := or(o.Remote, job.Output.Remote)
	if uri == "" {
		return nil, optionErrorf("the job of %s has no output.remote; say where to publish it", m.Name)
	}
	limit := int64(job.Output.RemoteBytesPerSecond)
	if o.BytesPerSecond != 0 {
		limit = o.BytesPerSecond
	}
	sources := NewSources(job, o.Logger)
	defer func() { err = errors.Join(err, sources.Close()) }()
	if err := arriveWhole(ctx, m, sources, limit, &o.Options); err != nil {
		return nil, err
	}
	d, err := openRemote(sources, uri, limit, "publishing", o.Logger)
	if err != nil {
		return nil, err
	}
	of := &publishing{job, o.Options}
	newest := isModel(m)
	var earlier []*remote.Published
	if newest { // of another generation, only this one is asked for
		if earlier, err = publishEarlier(ctx, d, m, of); err != nil {
			return nil, err
		}
	}
	if out, err = publishOne(ctx, d, m, newest, of); err != nil {
		return nil, err
	}
	out.Earlier = earlier
	return out, nil
}

// PublishAgain makes the model of the model directory dir, which has gone back to it, the
// newest one of output.remote of its job. Without output.remote it does nothing. That it
// fails is logged, and no error unless ctx has ended: the directory has its model.
func PublishAgain(ctx context.Context, dir string, o Options) (*remote.Published, error) {
	o.ensureDefaults()
	uri, err := remoteOf(dir)
	if err != nil || uri == "" {
		return nil, err
	}
	out, err := Publish(ctx, PublishOptions{Model: dir, Options: o})
	if err != nil && ctx.Err() == nil {
		o.Logger.Error("the model directory has gone back to this model, but output.remote may have another one as its newest", "remote", uri, "command", "aibox publish "+humanize.ShellWord(dir), "error", err)
		return nil, nil
	}
	return out, err
}

// remoteOf returns output.remote of a model's job.
func remoteOf(dir string) (string, error) {
	m, err := modeldir.Open(dir)
	if err != nil {
		return "", err
	}
	job, _, err := savedJob(m, configs.LoadOptions{})
	if err := errors.Join(err, m.Close()); err != nil {
		return "", err
	}
	return job.Output.Remote, nil
}

// publishOne publishes a model. newest says that it is to be the newest one there.
func publishOne(ctx context.Context, d *remote.Directory, m *modeldir.Model, newest bool, o *publishing) (out *remote.Published, err error) {
	files, err := m.Portable(ctx, o.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	p, err := publication(m, files, o)
	if err != nil {
		return nil, err
	}
	p.Newest = newest
	return d.Publish(ctx, *p)
}

// publication describes a model for a remote directory.
func publication(m *modeldir.Model, files *modeldir.Portable, o *publishing) (*remote.Publication, error) {
	manifest, err := json.Marshal(&m.Manifest)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	p := &remote.Publication{
		Job: o.jobName(&m.Manifest), Owner: host + ":" + modeldir.RealDir(m.Dir), Identity: m.Identity(), ParentIdentity: m.StartedFrom.Identity,
		AiboxVersion: o.Version, Number: m.Number(), Model: manifest, Keep: o.job.Output.RemoteKeepGenerations,
	}
	for _, f := range files.Files {
		p.Files = append(p.Files, remote.Local{Name: f.Name, Bytes: f.Bytes, Unique: f.Unique, Open: func() (remote.ReaderAt, error) { return f.Open() }})
	}
	return p, nil
}

// openRemote opens a remote directory, and logs the progress of what is done with it.
func openRemote(sources *source.Sources, uri string, bytesPerSecond int64, doing string, log *slog.Logger) (*remote.Directory, error) {
	d, err := sources.Directory(uri)
	if err != nil {
		return nil, err
	}
	return remote.Open(d.URI, d, remote.Options{
		BytesPerSecond: bytesPerSecond, Logger: log, Progress: logProgress(doing, uri, log), Optional: modeldir.IsReport,
	}), nil
}

// errAbsent says that a remote directory is not there.
var errAbsent = errkind.New(errkind.IO, "it does not exist")

// openRemoteToRead is openRemote for a remote directory whose contents decide what is done. If it
// is one of a mounted file system, it has to exist: where that is not mounted, nobody knows what
// is there. HDFS is not mounted; there, a directory that does not exist is an empty one.
func openRemoteToRead(sources *source.Sources, uri string, bytesPerSecond int64, doing string, log *slog.Logger) (*remote.Directory, error) {
	if path := mountedPath(sources, uri); path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return nil, fmt.Errorf("remote directory %s: %w: mount its file system, or make it, if nothing was ever written there: mkdir -p %s", uri, errAbsent, humanize.ShellWord(path))
		}
	}
	return openRemote(sources, uri, bytesPerSecond, doing, log)
}

// mountedPath is the path of a remote directory that is on a mounted file system; "": it is not.
func mountedPath(sources *source.Sources, uri string) string {
	d, err := sources.Directory(uri)
	if err != nil { // whoever opens it says why
		return ""
	}
	return d.LocalPath()
}

// logProgress logs how many bytes were moved, now and then.
func logProgress(doing, uri string, log *slog.Logger) func(done, total int64) {
	var mu sync.Mutex
	last := time.Now()
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		log.Info(doing, "remote", uri, "done", humanize.Bytes(done), "of", humanize.Bytes(total))
	}
}

// publishingReport is remote.json in the model directory: what became of the last model's
// publication.
type publishingReport struct {
	Remote     string            `json:"remote"`
	Generation int               `json:"generation"` // of the model directory
	Published  *remote.Published `json:"published,omitempty"`
	Error      string            `json:"error,omitempty"`
	At         string            `json:"at"` // in UTC, as RFC 3339 has it
}

const publishingReportName = "remote.json"

// publishTrained publishes the model that a run has committed. That it fails does not make
// the run fail, except if the run was told to stop.
func publishTrained(ctx context.Context, job *configs.Job, opts *Options, s *Summary) error {
	if job.Output.Remote == "" {
		return nil
	}
	log := opts.Logger
	log.Info("publishing the model", "remote", job.Output.Remote)
	name := modeldir.JoinName(job.Output.ModelDir, s.generation)
	out, err := Publish(ctx, PublishOptions{Model: name, Remote: job.Output.Remote, BytesPerSecond: int64(job.Output.RemoteBytesPerSecond), Options: *opts})
	report := publishingReport{Remote: job.Output.Remote, Generation: s.generation, Published: out, At: time.Now().UTC().Format(time.RFC3339)}
	if err != nil {
		report.Error = err.Error()
		s.NotPublished = err.Error()
	}
	s.Published = out
	data, e := json.MarshalIndent(report, "", "  ")
	if e == nil {
		e = modeldir.WriteFile(filepath.Join(job.Output.ModelDir, publishingReportName), append(data, '\n'))
	}
	if e != nil {
		log.Warn("what became of the model's publication could not be written", "file", publishingReportName, "error", e)
	}
	switch {
	case err == nil:
		log.Info("the model is published", "as", out.URI, "already", out.Already, "uploaded_bytes", out.UploadedBytes, "deleted_bytes", out.DeletedBytes, "seconds", out.Seconds)
	case ctx.Err() != nil:
		return fmt.Errorf("the model is committed, but publishing it was interrupted; `aibox publish %s` goes on with it: %w", humanize.ShellWord(name), err)
	default:
		log.Error("the model is committed, but not published; `aibox publish` tries it again, and so does the next run before it publishes its own", "command", "aibox publish "+humanize.ShellWord(name), "error", err)
	}
	return nil
}
