package main

import (
	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/jobview"
	"aibox/trainer/inference"
	"aibox/trainer/report"
)

// modelFlags are the flags of the commands that use a trained model.
func modelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model-dir", Usage: "model directory `DIR`, or one of its generations, as DIR@N"},
		&cli.StringSliceFlag{Name: "data", Usage: "`URI` of the data: a path, a glob or hdfs://…; may be repeated"},
		&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job that the model was trained with: `KEY=VALUE`, such as data.format=csv"},
		cmdline.DateFlag(),
	}
}

// withModel loads the model that the flags name and calls f with it while the
// progress display runs.
func withModel(c *cli.Context, f func(l *inference.Model) error) error {
	dated, err := cmdline.DatedJob(c)
	if err != nil {
		return err
	}
	dir, err := cmdline.PathFlag(c, dated, "model-dir")
	if err != nil {
		return err
	}
	status := new(report.Status)
	log := cmdline.NewLogger(c)
	d := jobview.Watch(cmdline.ConsoleOf(c), status, log)
	defer d.Stop()
	l, err := inference.Load(c.Context, dir, configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")}, inference.Options{Logger: log, Status: status})
	if err != nil {
		return err
	}
	defer cmdline.CloseWith(log, "the model", l)
	if err := f(l); err != nil {
		return err
	}
	d.Stop()
	return nil
}

func evalCommand() *cli.Command {
	return &cli.Command{
		Name:  "eval",
		Usage: "evaluate a trained model on labelled data",
		Description: `Needs no job file: the model directory holds the settings of the model's job.
Prints a table, or JSON with --json.

Examples:

  aibox eval --model-dir model --data test.tsv
  aibox eval --model-dir model --data 'hdfs://nn:8020/logs/{{date}}/*.gz' --json`,
		Flags: append(modelFlags(), &cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action: func(c *cli.Context) error {
			if err := cliargs.NoArguments(c); err != nil {
				return err
			}
			if err := cliargs.NeedFlags(c, "model-dir", "data"); err != nil {
				return err
			}
			var e *inference.Evaluation
			err := withModel(c, func(l *inference.Model) (err error) {
				data, err := cmdline.PathFlags(c, l.Job, "data")
				if err != nil {
					return err
				}
				e, err = l.Evaluate(c.Context, data)
				return err
			})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, e)
			}
			return jobview.PrintEvaluation(c.App.Writer, e)
		},
	}
}
