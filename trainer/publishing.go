package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// A finished model is published to output.remote, a directory on HDFS or a mounted file system,
// from which any machine can restore it. The model is committed before that, so a failing remote
// directory never costs the model, only its remote copy.

// transfer returns the options for package transfer.
func (o *Options) transfer() transfer.Options {
	return transfer.Options{Logger: o.Logger, Version: o.Version}
}

// publishTrained publishes the model that the run has committed. A failure to publish does not make
// the run fail, unless the run was told to stop. If files of the table cannot be read, the job may
// begin again: see trainsAgain.
func (r *run) publishTrained(ctx context.Context) error {
	uri, dir, s := r.job.Output.Remote, r.job.Output.ModelDir, &r.summary
	if uri == "" {
		return nil
	}
	r.log.Info("publishing the model", "remote", uri)
	name := modeldir.JoinName(dir, s.Generation)
	o := transfer.PublishOptions{Model: name, Remote: uri, BytesPerSecond: int64(r.job.Output.RemoteBytesPerSecond), Newest: true, Options: r.opts.transfer()}
	out, err := transfer.Publish(ctx, o)
	if r.notReadable(err) != nil && ctx.Err() == nil { // perhaps for a moment only
		r.log.Warn("a file of the model's table cannot be read; publishing is tried once more", "error", err)
		out, err = transfer.Publish(ctx, o)
	}
	s.Published = out
	if at := r.job.Snapshots.Remote; source.Full(err) && at != "" {
		err = fmt.Errorf("%w; %s keeps snapshots of this run until the model is published: if they take up the space, delete the directory %s/snapshots", err, at, strings.TrimRight(at, "/"))
	}
	if err != nil {
		s.NotPublished = err.Error()
	}
	if e := transfer.UpdateReport(dir, func(r *transfer.Report) bool {
		r.Remote, r.Generation, r.Published, r.Error = uri, s.Generation, out, s.NotPublished
		r.At = time.Now().UTC().Format(time.RFC3339)
		return true
	}); e != nil {
		r.log.Warn("the report on the model's publication could not be written", "file", transfer.ReportName, "error", e)
	}
	switch {
	case err == nil:
		r.log.Info("the model is published", "as", out.URI, "already", out.Already, "uploaded_bytes", out.UploadedBytes, "deleted_bytes", out.DeletedBytes, "seconds", out.Seconds)
	case ctx.Err() != nil:
		return fmt.Errorf("the model is committed, but publishing it was interrupted; `aibox publish %s` continues it: %w", humanize.ShellWord(name), err)
	case r.trainsAgain(r.notReadable(err)):
	default:
		r.log.Error("the model is committed, but not published; `aibox publish` tries again, and so does the next run before it publishes its own model", "command", "aibox publish "+humanize.ShellWord(name), "error", err)
	}
	return nil
}

// notReadable returns the *modeldir.LostError if a model could not be published because files of
// its table are lost: the disk has failed since they were written, or has bad blocks, which only
// reading finds.
func (r *run) notReadable(err error) (lost *modeldir.LostError) {
	_ = errors.As(modeldir.TableFailed(r.table.dirs, err), &lost)
	return lost
}

// trainsAgain reports whether Train begins again because files of the committed model's table are
// lost, and logs that. The next night would find the loss, too, but could no longer go back to a
// snapshot of this run. Train does not begin again for a job without a date that starts from its
// newest model, since it would start from the one that it has just made.
func (r *run) trainsAgain(lost *modeldir.LostError) bool {
	if lost == nil || r.job.Training.WarmStart == configs.WarmStartLatest && !r.job.Dated || !r.opts.failures.beginAgain(lost) {
		return false
	}
	uploads := r.summary.Snapshots.Remote
	r.again = &loss{
		err: lost, at: report.Resumption{Epoch: r.state.Epoch, Step: r.state.Engine.Step, Examples: r.state.Examples},
		snapshots: true, uploaded: uploads != nil && uploads.Step > 0,
	}
	r.opts.Fresh = false
	r.log.Error("the model is committed, but cannot be published, since files of its table cannot be read, even on a second attempt. Replace the disk. The job starts again from the last intact snapshot", "error", lost)
	return true
}
