package trainer

import (
	"context"
	"fmt"
	"time"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// A finished model is published to output.remote, a directory on HDFS or a mounted file
// system, from which any machine can restore it. The model is committed before that, so a
// remote directory that fails costs its copy and never the model.

// transfer are the options of package transfer.
func (o *Options) transfer() transfer.Options {
	return transfer.Options{Logger: o.Logger, Version: o.Version}
}

// publishTrained publishes the model that a run has committed. That it fails does not make
// the run fail, except if the run was told to stop.
func publishTrained(ctx context.Context, job *configs.Job, opts *Options, s *Summary) error {
	if job.Output.Remote == "" {
		return nil
	}
	log := opts.Logger
	log.Info("publishing the model", "remote", job.Output.Remote)
	name := modeldir.JoinName(job.Output.ModelDir, s.generation)
	out, err := transfer.Publish(ctx, transfer.PublishOptions{Model: name, Remote: job.Output.Remote, BytesPerSecond: int64(job.Output.RemoteBytesPerSecond), Options: opts.transfer()})
	s.Published = out
	if err != nil {
		s.NotPublished = err.Error()
	}
	if e := transfer.UpdateReport(job.Output.ModelDir, func(r *transfer.Report) bool {
		r.Remote, r.Generation, r.Published, r.Error = job.Output.Remote, s.generation, out, s.NotPublished
		r.At = time.Now().UTC().Format(time.RFC3339)
		return true
	}); e != nil {
		log.Warn("what became of the model's publication could not be written", "file", transfer.ReportName, "error", e)
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
