package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/modelfiles"
	"aibox/trainer/remote"
)

// A finished model is published to output.remote, a directory on HDFS or a mounted file system,
// from which any machine can restore it. The model is committed before that, so a failing remote
// directory never costs the model, only its remote copy.

// PublishOptions are the options of Publish.
type PublishOptions struct {
	Model          string // model directory, or one of its generations
	Remote         string // URI; "" for output.remote of the model's job
	BytesPerSecond int64  // 0 for that of the model's job
	Newest         bool   // make it the newest one there, even if its directory has gone back from it since it was made
	Verify         bool   // read what is there of the model, and repair it
	Options
}

// Publish brings a model to a remote directory, unless it is there already. The published model of
// a model directory becomes the newest one there, and missing models from which it was made are
// published before it. If the model directory has another model by the time it is there, that one
// is published again, so the newest one there is the one that the directory has.
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
	job, err := m.ParseJob(configs.LoadOptions{})
	if err != nil {
		return nil, err
	}
	uri := cmp.Or(o.Remote, job.Output.Remote)
	if uri == "" {
		return nil, errkind.Errorf(errkind.Usage, "the job of %s has no output.remote; name the remote directory with --to", m.Name)
	}
	limit := int64(job.Output.RemoteBytesPerSecond)
	if o.BytesPerSecond != 0 {
		limit = o.BytesPerSecond
	}
	sources := jobsource.New(job, o.Logger)
	defer func() { err = errors.Join(err, sources.Close()) }()
	if err := Complete(ctx, m, sources, limit, o.Logger); err != nil {
		return nil, err
	}
	d, err := Open(sources, uri, limit, "publishing", o.Logger)
	if err != nil {
		return nil, err
	}
	of := &publishing{job: job, Options: o.Options}
	if err := of.checkEmptied(ctx, d, sources, m); err != nil {
		return nil, err
	}
	if path := MountedPath(sources, uri); path != "" {
		if err := o.begin(m, path); err != nil {
			return nil, fmt.Errorf("remote directory %s: %w", uri, err)
		}
	}
	newest := o.Newest || isModel(m)
	var earlier []*remote.Published
	if newest { // for another generation, only that one is published
		if earlier, err = publishEarlier(ctx, d, m, of); err != nil {
			return nil, err
		}
	}
	of.verify = o.Verify
	if out, err = publishOne(ctx, d, m, newest, of); err != nil {
		return nil, err
	}
	out.Earlier = earlier
	note(m.Dir, placeOf(sources, uri), &o.Options)
	if newest && !isModel(m) {
		o.Logger.Info("the model directory has another model by now, which becomes the newest one in the remote directory", "model_dir", m.Dir, "remote", uri)
		if _, err := publishAgain(ctx, PublishOptions{Model: m.Dir, Remote: o.Remote, BytesPerSecond: o.BytesPerSecond, Options: o.Options}, uri); err != nil {
			return nil, fmt.Errorf("%s is published, but the model that %s has now is not the newest one there; `%s` makes it so: %w", m.Name, m.Dir, o.again(m.Dir), err)
		}
	}
	return out, nil
}

// begin records in the model directory that its models are in the remote directory at path, before
// one is: if the process were killed when the first one has just appeared there, nothing would
// record it. It first makes the subdirectory that Begun looks for, so that a directory that gets no
// model this time does not count as one that has lost its models.
func (o *PublishOptions) begin(m *modeldir.Model, path string) error {
	if err := (sparsetable.OSFS{}).MkdirAll(remote.Begin(path)); err != nil {
		return errkind.As(errkind.IO, err)
	}
	note(m.Dir, placeOfPath(path), &o.Options)
	return nil
}

// PublishAgain makes the model of the model directory dir, which has gone back to it, the newest
// one in output.remote of its job. Without output.remote it does nothing. A failure is only logged,
// unless ctx has ended, since the directory has its model.
func PublishAgain(ctx context.Context, dir string, o Options) (*remote.Published, error) {
	o.ensureDefaults()
	uri, err := remoteOf(dir)
	if err != nil || uri == "" {
		return nil, err
	}
	return publishAgain(ctx, PublishOptions{Model: dir, Options: o}, uri)
}

func publishAgain(ctx context.Context, o PublishOptions, uri string) (*remote.Published, error) {
	out, err := Publish(ctx, o)
	if err != nil && ctx.Err() == nil {
		o.Logger.Error("the model directory has gone back to this model, but the newest model in output.remote may be another one", "remote", uri, "command", o.again(o.Model), "error", err)
		return nil, nil
	}
	return out, err
}

// again returns the command that publishes the model of the directory dir to the same place.
func (o *PublishOptions) again(dir string) string {
	command := "aibox publish " + humanize.ShellWord(dir)
	if o.Remote != "" {
		command += " --to " + humanize.ShellWord(o.Remote)
	}
	return command
}

// remoteOf returns output.remote of the job of the model in dir.
func remoteOf(dir string) (string, error) {
	m, err := modeldir.Open(dir)
	if err != nil {
		return "", err
	}
	job, err := m.ParseJob(configs.LoadOptions{})
	if err := errors.Join(err, m.Close()); err != nil {
		return "", err
	}
	return job.Output.Remote, nil
}

// publishOne publishes a model. newest says whether it becomes the newest one there.
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
	p.Newest, p.Verify = newest, o.verify
	return d.Publish(ctx, *p)
}

// publication describes a model for a remote directory.
func publication(m *modeldir.Model, files *modelfiles.Held, o *publishing) (*remote.Publication, error) {
	manifest, err := json.Marshal(&m.Manifest)
	if err != nil {
		return nil, err
	}
	p := &remote.Publication{
		Job: o.jobName(&m.Manifest), Owner: OwnerOf(m.Dir), Identity: m.Identity(), ParentIdentity: m.StartedFrom.Identity,
		AiboxVersion: o.Version, Number: m.Number(), Model: manifest, Keep: o.job.Output.RemoteKeepGenerations,
	}
	if m.NightDir {
		p.Night = nightOf
	}
	p.Files = Locals(files.Files)
	return p, nil
}

// OwnerOf returns the Owner of what is published from a model directory on this machine.
func OwnerOf(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + disk.RealDir(dir)
}

// Locals returns files of a generation in the form in which package remote publishes them.
func Locals(files []modelfiles.File) []remote.Local {
	locals := make([]remote.Local, len(files))
	for i, f := range files {
		locals[i] = remote.Local{Name: f.Name, Bytes: f.Bytes, Unique: f.Unique, Private: f.Private, Open: func() (remote.ReaderAt, error) { return f.Open() }}
	}
	return locals
}
