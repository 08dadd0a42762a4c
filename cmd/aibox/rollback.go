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
		Usage:     "make an earlier generation the model of its directory again",
		ArgsUsage: "DIR",
		Description: `Publishes the generation from which the present model was made, or the one that --to
names, with its reports. From that instant on it is the model that commands read where
DIR is named, and from which the next run starts (training.warm_start: latest). Commands
that read the model before go on with it. No generation is deleted, so --to also goes
forward again; the next run that makes a model keeps the generations from which it was
made, and then the newest of the others, as many as output.keep_generations allows.

The files of the generation are verified, except for the rows of its table; "aibox
inspect DIR@N" verifies these too. If a generation is damaged, nothing changes. Where
MODEL.json is lost or damaged, --to publishes a generation that is whole.

In output.remote, if the model's job has one, that generation is made the newest one, too,
under a new number, which uploads only what is not there any more; with a date in
output.model_dir, the newest one of this directory. Where that fails, the model directory
has its model all the same, and the log names the command to try again.

Examples:

  aibox generations models/ctr
  aibox rollback models/ctr
  aibox rollback models/ctr --to 41`,
		Flags: append(cmdline.DateFlags(),
			&cli.IntFlag{Name: "to", Usage: "`NUMBER` of the generation to publish", DefaultText: "the one from which the present model was made"},
			&cli.BoolFlag{Name: "local", Usage: "leave output.remote as it is"},
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
		_, err = fmt.Fprintf(w, "generation %d is the model of %s already\n", r.Now, r.ModelDir)
	case 0:
		_, err = fmt.Fprintf(w, "generation %d is the model of %s now\n", r.Now, r.ModelDir)
	default:
		_, err = fmt.Fprintf(w, "generation %d is the model of %s now; it was generation %d\n", r.Now, r.ModelDir, r.Before)
	}
	return err
}
