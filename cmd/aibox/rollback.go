package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/trainer/modeldir"
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

Examples:

  aibox generations models/ctr
  aibox rollback models/ctr
  aibox rollback models/ctr --to 41`,
		Flags: append(dateFlags(),
			&cli.IntFlag{Name: "to", Usage: "`NUMBER` of the generation to publish", DefaultText: "the one from which the present model was made"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error {
			dir, err := modelDirArgument(c)
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
			if c.Bool("json") {
				return printJSON(c.App.Writer, struct {
					ModelDir string `json:"model_dir"`
					Before   int    `json:"published_before,omitempty"`
					Now      int    `json:"published"`
				}{dir, before.Number, now.Number})
			}
			switch before.Number {
			case now.Number:
				_, err = fmt.Fprintf(c.App.Writer, "generation %d is the model of %s already\n", now.Number, dir)
			case 0:
				_, err = fmt.Fprintf(c.App.Writer, "generation %d is the model of %s now\n", now.Number, dir)
			default:
				_, err = fmt.Fprintf(c.App.Writer, "generation %d is the model of %s now; it was generation %d\n", now.Number, dir, before.Number)
			}
			return err
		},
	}
}
