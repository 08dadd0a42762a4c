package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/humanize"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "bring a model to HDFS or another file system",
		ArgsUsage: "DIR",
		Description: `Publishes the model in DIR, or one of its generations (DIR@N), to the remote directory
that --to names, or that output.remote of its job names: "aibox train" does it when a
model is made. Only what the remote directory lacks is uploaded; a model that is there
already is left as it is. The models from which it was made, and which could not be
published in their nights, are published before it. The model appears there when all of it is there. After an
interruption, the same command goes on where it ended. Where the directory of a mounted
file system is empty although models of DIR were there, it may not be mounted: that is an
error, which says how to begin it anew if they were deleted on purpose. So is a directory that
has other files, such as data, and no models. After a rollback, the model of
DIR becomes the newest one there again. Of the job's models there, as
many stay as output.remote_keep_generations of the model's job allows: the newest or, with a
date in output.model_dir, those of the latest nights, beside the one that is published.

With --verify, all that the remote directory has of the model is read, and what is
missing or damaged is uploaded again in its place. It stays what and where it was for
all models that share it. "aibox inspect URI" says what is damaged there.

Examples:

  aibox publish models/ctr
  aibox publish --verify models/ctr@41
  aibox train nightly.yaml && aibox publish models/ctr
  aibox publish models/ctr@41 --to hdfs://nameservice/models/ctr --limit 200MiB`,
		Flags: append(cmdline.DateFlags(),
			&cli.StringFlag{Name: "to", Usage: "`URI` of the remote directory (default: output.remote of the model's job)"},
			&cli.BoolFlag{Name: "verify", Usage: "read all that is there of the model, and mend it"},
			limitFlag(), cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			dir, dated, err := cmdline.ModelArgument(c)
			if err != nil {
				return err
			}
			to, err := cmdline.PathFlag(c, dated, "to")
			if err != nil {
				return err
			}
			limit, err := cmdline.BytesFlag(c, "limit")
			if err != nil {
				return err
			}
			out, err := transfer.Publish(c.Context, transfer.PublishOptions{
				Model: dir, Remote: to, BytesPerSecond: limit, Verify: c.Bool("verify"), Options: transfer.Options{Logger: cmdline.NewLogger(c), Version: version},
			})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, out)
			}
			for _, p := range append(out.Earlier, out) {
				if _, err := fmt.Fprintln(c.App.Writer, publishedText(p)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func publishedText(p *remote.Published) string {
	text := fmt.Sprintf("%s has the model already", p.URI)
	if !p.Already {
		text = fmt.Sprintf("published as %s: %s, of which %s were uploaded, in %.1f s", p.URI, humanize.Bytes(p.Bytes), humanize.Bytes(p.UploadedBytes), p.Seconds)
	}
	if p.MendedBytes > 0 {
		text += fmt.Sprintf("; %s were missing or damaged there, and are uploaded again", humanize.Bytes(p.MendedBytes))
	}
	return text
}

func limitFlag() cli.Flag {
	return &cli.StringFlag{Name: "limit", Usage: "move at most so many `BYTES` in a second, such as 100MiB (default: output.remote_bytes_per_second of the job, or no limit)"}
}
