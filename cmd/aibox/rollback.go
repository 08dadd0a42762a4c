package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

func rollbackCommand() *cli.Command {
	return &cli.Command{
		Name:      "rollback",
		Usage:     "publish an earlier generation of a model directory again",
		ArgsUsage: "DIR",
		Description: `Publishes the generation that the current model was made from, or the one that --to
names, with its reports. From that instant on, commands given DIR read this model, and
the next run starts from it (training.warm_start: latest). Commands that are already
reading the previous model continue with that one. No generation is deleted, so --to can
also go forward again. The next run that produces a model keeps the generations that the
model was made from, then the newest of the others, up to output.keep_generations.

The files of the generation are verified, except for the rows of its table; "aibox
inspect DIR@N" verifies these too. If the generation is damaged, nothing changes. If
MODEL.json is lost or damaged, --to publishes an intact generation.

If the model's job has output.remote, the generation also becomes the newest one there
(with a date in output.model_dir, the newest one of this directory), under a new number.
Only files that are no longer there are uploaded. If that fails, the model directory has
been rolled back nevertheless, and the log names the command to try again.

Examples:

  aibox generations models/ctr
  aibox rollback models/ctr
  aibox rollback models/ctr --to 41`,
		Flags: append(cmdline.DateFlags(),
			&cli.IntFlag{Name: "to", Usage: "`NUMBER` of the generation to publish", DefaultText: "the one that the current model was made from"},
			&cli.BoolFlag{Name: "local", Usage: "do not change output.remote"},
			cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) error {
			dir, _, err := modelDirArgument(c)
			if err != nil {
				return err
			}
			to := c.Int("to")
			if c.IsSet("to") && to < 1 {
				return cliargs.Errorf("%s: --to %d: want the number of a generation; `aibox generations %s` lists them", cliargs.CommandPath(c), to, dir)
			}
			log := cmdline.NewLogger(c)
			back, err := modeldir.Rollback(dir, to)
			if !back.To.Published {
				return err
			}
			for _, err := range back.Leftovers {
				log.Warn("the model directory has gone back to this model, but some files at its top could not be replaced or deleted; the next run tries again", "error", err)
			}
			out := rolledBack{ModelDir: dir, Before: back.From.Number, Now: back.To.Number}
			return errors.Join(err, out.publish(c, log)) // whatever has failed, the model is another one
		},
	}
}

// rolledBack says what rollback did.
type rolledBack struct {
	ModelDir string            `json:"model_dir"`
	Before   int               `json:"published_before,omitempty"`
	Now      int               `json:"published"`
	Remote   *remote.Published `json:"remote,omitempty"` // in output.remote
}

// publish prints what rollback did, and makes the model the newest one in output.remote.
func (r *rolledBack) publish(c *cli.Context, log *slog.Logger) (err error) {
	if !c.Bool("json") {
		if err := r.print(c.App.Writer); err != nil {
			return err
		}
	}
	if !c.Bool("local") {
		if r.Remote, err = transfer.PublishAgain(c.Context, r.ModelDir, transfer.Options{Logger: log, Version: version}); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, r)
	}
	if r.Remote != nil {
		_, err = fmt.Fprintln(c.App.Writer, publishedText(r.Remote))
	}
	return err
}

func (r *rolledBack) print(w io.Writer) (err error) {
	switch r.Before {
	case r.Now:
		_, err = fmt.Fprintf(w, "generation %d is already the model of %s\n", r.Now, r.ModelDir)
	case 0:
		_, err = fmt.Fprintf(w, "generation %d is the model of %s now\n", r.Now, r.ModelDir)
	default:
		_, err = fmt.Fprintf(w, "generation %d is the model of %s now; it was generation %d\n", r.Now, r.ModelDir, r.Before)
	}
	return err
}
