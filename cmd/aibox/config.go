package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/jobview"
	"aibox/trainer"
	"aibox/trainer/forecast"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:      "config",
		Usage:     "check, print and create job files",
		ArgsUsage: "check|show|init",
		Action:    func(c *cli.Context) error { return cli.ShowSubcommandHelp(c) },
		Subcommands: []*cli.Command{
			{
				Name:      "check",
				Usage:     "report every error in a job file",
				ArgsUsage: "JOB.yaml",
				Description: `Reports all errors at once, each with line and column, the value, what is allowed and
the nearest valid name. The data files are not opened, but outputs that would overwrite
one of them are reported. With engine.kind: cuda, it prints how much device memory the
job takes, and reports an error if that is more than is free.

Examples:

  aibox config check job.yaml
  aibox config check nightly.yaml --date 2026-11-20 --set training.epochs=2`,
				Flags: cmdline.JobFlags(),
				Action: func(c *cli.Context) error {
					job, err := cmdline.LoadJob(c)
					if err != nil {
						return err
					}
					if err := trainer.Check(c.Context, job); err != nil {
						return err
					}
					if err := jobview.PrintDevices(c.App.Writer, job, forecast.DataSize{}, ""); err != nil {
						return err
					}
					_, err = fmt.Fprintf(c.App.Writer, "%s: no faults\n", c.Args().First())
					return err
				},
			},
			{
				Name:      "show",
				Usage:     "print a job file with every default filled in and explained",
				ArgsUsage: "JOB.yaml",
				Description: `Comments at the end forecast how much memory the job will take, device memory included.
For that, the start of data.train is read if it consists of local files.

Examples:

  aibox config show job.yaml
  aibox config show job.yaml --set model.kind=deepfm > deepfm.yaml`,
				Flags: cmdline.JobFlags(),
				Action: func(c *cli.Context) error {
					job, err := cmdline.LoadJob(c)
					if err != nil {
						return err
					}
					if err := job.Show(c.App.Writer); err != nil {
						return err
					}
					return jobview.PrintForecast(c.Context, c.App.Writer, job)
				},
			},
			{
				Name:  "init",
				Usage: "print a commented job file to start from",
				Description: `The job file is ready to train once it names your data and its columns.

Examples:

  aibox config init > job.yaml
  aibox config init --model dcn_v2 --format csv > job.yaml`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "model", Value: "dlrm", Usage: "`KIND` of network: aibox, dlrm, wide_deep, deepfm, dcn, dcn_v2, fm or lr"},
					&cli.StringFlag{Name: "format", Value: "criteo", Usage: "`FORMAT` of the data: criteo, csv, tsv, libsvm, libffm or parquet"},
				},
				Action: func(c *cli.Context) error {
					if err := cliargs.NoArguments(c); err != nil {
						return err
					}
					if err := cliargs.OneOf(c, "model", configs.ModelKinds); err != nil {
						return err
					}
					if err := cliargs.OneOf(c, "format", cmdline.Formats); err != nil {
						return err
					}
					return configs.Init(c.App.Writer, c.String("model"), c.String("format"))
				},
			},
		},
	}
}
