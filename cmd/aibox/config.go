package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"aibox/configs"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "check, show and make job files",
		Subcommands: []*cli.Command{
			{
				Name:      "check",
				Usage:     "report every fault of a job file",
				ArgsUsage: "JOB.yaml",
				Description: `Example:

  aibox config check job.yaml --date 2026-11-20`,
				Flags: jobFlags(),
				Action: func(c *cli.Context) error {
					if _, err := loadJob(c); err != nil {
						return err
					}
					_, err := fmt.Fprintf(c.App.Writer, "%s: no faults\n", c.Args().First())
					return err
				},
			},
			{
				Name:      "show",
				Usage:     "print the effective job, defaults filled in and explained",
				ArgsUsage: "JOB.yaml",
				Description: `Example:

  aibox config show job.yaml --set model.kind=deepfm`,
				Flags: jobFlags(),
				Action: func(c *cli.Context) error {
					job, err := loadJob(c)
					if err != nil {
						return err
					}
					return job.Show(c.App.Writer)
				},
			},
			{
				Name:  "init",
				Usage: "print a commented job file to start from",
				Description: `Example:

  aibox config init --model dlrm --format criteo > job.yaml`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "model", Value: "dlrm", Usage: "`KIND` of network: aibox, dlrm, wide_deep, deepfm, dcn, dcn_v2, fm or lr"},
					&cli.StringFlag{Name: "format", Value: "criteo", Usage: "`FORMAT` of the data: criteo, csv, tsv, libsvm, libffm or parquet"},
				},
				Action: func(c *cli.Context) error {
					if err := noArguments(c); err != nil {
						return err
					}
					return configs.Init(c.App.Writer, c.String("model"), c.String("format"))
				},
			},
		},
	}
}
