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
		Usage:     "copy a model to HDFS or another file system",
		ArgsUsage: "DIR",
		Description: `Publishes the model in DIR, or one of its generations (DIR@N), to the remote directory
that --to or output.remote of its job names. "aibox train" does this by itself when it
has produced a model. Only files that the remote directory lacks are uploaded, and a
model that is already there is left alone. Models that it was made from and that could
not be published at the time are published first. The model appears there once it is
complete. To resume after an interruption, run the same command again.

If a directory on a mounted file system is empty although models of DIR were there, the
file system may not be mounted. That is an error, whose message says how to start afresh
if they were deleted on purpose. A directory with other files, such as data, and no
models is an error too.

After a rollback, the model of DIR becomes the newest one there again.
output.remote_keep_generations of the model's job limits how many of the job's models
stay there: besides the one being published, the newest or, with a date in
output.model_dir, those of the latest nights.

With --verify, all remote files of the model are read, and those that are missing or
damaged are uploaded again in place, which repairs them for every model that shares them.
"aibox inspect URI" reports damaged files.

Examples:

  aibox publish models/ctr
  aibox publish --verify models/ctr@41
  aibox train nightly.yaml && aibox publish models/ctr
  aibox publish models/ctr@41 --to hdfs://nameservice/models/ctr --limit 200MiB`,
		Flags: append(cmdline.DateFlags(),
			&cli.StringFlag{Name: "to", Usage: "`URI` of the remote directory (default: output.remote of the model's job)"},
			&cli.BoolFlag{Name: "verify", Usage: "read all of the model's remote files and repair them"},
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
	text := fmt.Sprintf("%s already has the model", p.URI)
	if !p.Already {
		text = fmt.Sprintf("published as %s: %s, of which %s were uploaded, in %.1f s", p.URI, humanize.Bytes(p.Bytes), humanize.Bytes(p.UploadedBytes), p.Seconds)
	}
	if p.MendedBytes > 0 {
		text += fmt.Sprintf("; %s were missing or damaged there, and were uploaded again", humanize.Bytes(p.MendedBytes))
	}
	return text
}

func limitFlag() cli.Flag {
	return &cli.StringFlag{Name: "limit", Usage: "transfer at most this many `BYTES` per second, such as 100MiB (default: output.remote_bytes_per_second of the job, or no limit)"}
}
