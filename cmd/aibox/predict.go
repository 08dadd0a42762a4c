package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/trainer"
)

func predictCommand() *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "write a click probability for every row of the data",
		Description: `Works from the model directory alone. Labels are not needed; where the data has
them they are written along. Bad rows are counted and left out.

Examples:

  aibox predict --model-dir model --data new.csv --output scores.csv
  aibox predict --model-dir model --data 'in/*.parquet' --output scores.parquet --columns user,item`,
		Flags: append(modelFlags(),
			&cli.StringFlag{Name: "output", Usage: "`FILE` to write: .csv, .csv.gz, .csv.zst or .parquet, local or hdfs://…"},
			&cli.StringFlag{Name: "columns", Usage: "input columns to pass through: `NAME,NAME`"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
		),
		Action: func(c *cli.Context) error {
			if err := cliargs.NoArguments(c); err != nil {
				return err
			}
			if err := cliargs.NeedFlags(c, "model-dir", "data", "output"); err != nil {
				return err
			}
			var p *trainer.Prediction
			err := withModel(c, func(l *trainer.Loaded) (err error) {
				data, err := pathFlags(c, l.Job, "data")
				if err != nil {
					return err
				}
				output, err := pathFlag(c, l.Job, "output")
				if err != nil {
					return err
				}
				p, err = l.Predict(c.Context, trainer.PredictOptions{
					Data: data, Output: output, Columns: splitNames(c.String("columns")),
				})
				return err
			})
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(c.App.Writer, p)
			}
			_, err = fmt.Fprintf(c.App.Writer, "%d predictions, mean %.5f, written to %s (%d bad rows left out)\n", p.Examples, p.Mean, p.Output, p.Rows.Bad)
			return err
		},
	}
}
