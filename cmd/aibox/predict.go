package main

import (
	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/jobview"
	"aibox/trainer/inference"
)

func predictCommand() *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "write a click probability for every row of the data",
		Description: `Needs no job file: the model directory holds the settings of the model's job.
The data need no labels, example weights or data.group_by column; labels are written if
present. No row is dropped silently: a bad or lost row ends the command, unless
--keep-bad-rows is given, which writes bad rows without a prediction. A prediction that
is not a finite number always ends the command: either the model has diverged, or a
number in the row is far from those in the training data.

Parquet lists stay lists in Parquet output. In text output, their values are separated by
the column's separator, or by "|" if it has none. In the latter case a value that
contains "|" ends the command, unless --keep-bad-rows is given.

Examples:

  aibox predict --model-dir model --data new.csv --output scores.csv
  aibox predict --model-dir model --data 'in/*.parquet' --output scores.parquet --columns user,item`,
		Flags: append(modelFlags(),
			&cli.StringFlag{Name: "output", Usage: "`FILE` to write: .csv, .tsv or .parquet, text also as .csv.gz or .csv.zst, local or hdfs://…"},
			&cli.StringFlag{Name: "columns", Usage: "input columns to pass through: `NAME,NAME`; quote a name with a comma as in CSV"},
			&cli.BoolFlag{Name: "keep-bad-rows", Usage: "write an empty prediction for each bad row and for each row lost in a damaged Parquet page, and accept lost data up to the job's data.max_lost_fraction; rows lost in a damaged text or compressed file, whose number is unknown, are only reported"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
		),
		Action: func(c *cli.Context) error {
			if err := cliargs.NoArguments(c); err != nil {
				return err
			}
			if err := cliargs.NeedFlags(c, "model-dir", "data", "output"); err != nil {
				return err
			}
			var p *inference.Prediction
			err := withModel(c, func(l *inference.Model) (err error) {
				data, err := cmdline.PathFlags(c, l.Job, "data")
				if err != nil {
					return err
				}
				output, err := cmdline.PathFlag(c, l.Job, "output")
				if err != nil {
					return err
				}
				p, err = l.Predict(c.Context, inference.PredictOptions{
					Data: data, Output: output, Columns: cmdline.SplitNames(c.String("columns")),
					KeepBadRows: c.Bool("keep-bad-rows"),
				})
				return err
			})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, p)
			}
			return jobview.PrintPrediction(c.App.Writer, p)
		},
	}
}
