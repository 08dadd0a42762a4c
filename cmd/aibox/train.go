package main

import (
	"github.com/urfave/cli/v2"

	"aibox/internal/jobview"
	"aibox/trainer"
)

func trainCommand() *cli.Command {
	return &cli.Command{
		Name:      "train",
		Usage:     "train the model of a job file",
		ArgsUsage: "JOB.yaml",
		Description: `Reads the training data, trains, evaluates, and leaves the model in the job's
output.model_dir, with summary.json, metrics.jsonl and TensorBoard events. A
model that the directory held before stays until the new one is complete. A job
that fails leaves summary-failed.json there, which says why.
Ctrl-C ends the job before the next mini-batch; a second Ctrl-C ends it at once.

Examples:

  aibox train configs/criteo.yaml
  aibox train nightly.yaml --date 2026-11-20
  aibox train job.yaml --set training.epochs=2 --set output.model_dir=models/two`,
		Flags: jobFlags(),
		Action: func(c *cli.Context) error {
			job, err := loadJob(c)
			if err != nil {
				return err
			}
			status := new(trainer.Status)
			log := newLogger(c)
			d := jobview.Watch(consoleOf(c), status, log)
			defer d.Stop()
			summary, err := trainer.Train(c.Context, job, trainer.Options{Logger: log, Status: status, Version: version})
			d.Stop()
			if err != nil {
				return err
			}
			return jobview.PrintSummary(c.App.Writer, summary)
		},
	}
}
