package main

import (
	"fmt"
	"io"

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
			before, now, err := modeldir.Rollback(dir, to)
			if err != nil {
				return err
			}
			out := rolledBack{ModelDir: dir, Before: before.Number, Now: now.Number}
			if !c.Bool("json") {
				if err := out.print(c.App.Writer); err != nil {
					return err
				}
			}
			if !c.Bool("local") {
				out.Remote, err = transfer.PublishAgain(c.Context, dir, transfer.Options{Logger: cmdline.NewLogger(c), Version: version})
				if err != nil {
					return err
				}
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, out)
			}
			if out.Remote != nil {
				_, err = fmt.Fprintln(c.App.Writer, publishedText(out.Remote))
			}
			return err
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
