package trainer

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// A finished model is published to output.remote, a directory on HDFS or a mounted file
// system, from which any machine can restore it. The model is committed before that, so a
// remote directory that fails costs its copy and never the model.

// transfer are the options of package transfer.
func (o *Options) transfer() transfer.Options {
	return transfer.Options{Logger: o.Logger, Version: o.Version}
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
	out, err := transfer.Publish(ctx, transfer.PublishOptions{Model: name, Remote: job.Output.Remote, BytesPerSecond: int64(job.Output.RemoteBytesPerSecond), Options: opts.transfer()})
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
