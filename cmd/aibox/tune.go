package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/internal/jobview"
	"aibox/internal/tune"
	"aibox/trainer"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

func tuneCommand() *cli.Command {
	return &cli.Command{
		Name:      "tune",
		Usage:     "find better settings for a job",
		ArgsUsage: "JOB.yaml",
		Description: `Trains the job with other learning rates, L2 penalties, network sizes and numbers of
epochs, prints a table of the results, and writes the best settings into a copy of the
job file. Trials are compared on the end of the training data, which they do not train
on, so the data should be in time order; data.eval is not read. Every trial trains a new
model, whatever training.warm_start says, and deletes it after its evaluation.

All trials train on a small part of the data, the best third of them on three times as
much, and so on; the best three and the original job train on all of it. With 27 trials,
this reads all of the data about ten times per epoch. If the data span many days, use
--examples to search on the first examples only. If many settings improved, a search
that starts from the new job file may find more.

To resume an interrupted search, run the same command again. A search does not prevent
"aibox train" from training the same job, so leave memory for both.

Examples:

  aibox tune job.yaml
  aibox tune job.yaml --examples 5000000 --over learning_rates,l2
  aibox tune job.yaml --trials 81 --metric auc --output best.yaml`,
		Flags: append(cmdline.JobFlags(),
			&cli.StringFlag{Name: "output", Usage: "write the job file with the best settings to `FILE`, which must not exist (default: JOB-tuned.yaml beside the job file)"},
			&cli.StringFlag{Name: "dir", Usage: "`DIR` for the journal of the search and the models of trials (default: output.model_dir with -tune appended)"},
			&cli.IntFlag{Name: "trials", Value: 27, Usage: "`NUMBER` of settings to try, including those of the original job"},
			&cli.StringFlag{Name: "over", Value: strings.Join(tune.Groups, ","), Usage: "`LIST` of what to vary"},
			&cli.IntFlag{Name: "epochs", Value: 3, Usage: "maximum `NUMBER` of epochs; a trial trains fewer if one more makes the model worse; a job with training.early_stopping keeps its own training.epochs"},
			&cli.StringFlag{Name: "metric", Value: string(tune.LogLoss), Usage: "`METRIC` to compare trials by: log_loss or auc"},
			&cli.Int64Flag{Name: "examples", Usage: "use the first `NUMBER` examples of data.train", DefaultText: "all, or data.limit"},
			&cli.Float64Flag{Name: "validation-fraction", Usage: "`SHARE` of the examples to hold out", DefaultText: "data.validation_fraction, or 0.1"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` for choosing the settings"},
			&cli.BoolFlag{Name: "fresh", Usage: "start over: delete the results of an interrupted search"},
			cmdline.JSONFlag(),
		),
		Action: func(c *cli.Context) (err error) {
			job, err := cmdline.LoadJob(c)
			if err != nil {
				return err
			}
			o, output, err := tuneOptions(c, job)
			if err != nil {
				return err
			}
			if err := checkTunedFile(c, job, output, o.Dir); err != nil {
				return err
			}
			lock, err := lockName(c, job.File(), job.PlainName()+" (tune)", time.Time{}, "that process is searching for settings (aibox tune); wait until it ends", o.Logger)
			if err != nil {
				return err
			}
			defer cmdline.CloseWith(o.Logger, "the lock of the search", lock)
			found, err := tune.Run(c.Context, o)
			if err != nil {
				return err
			}
			if err := writeTunedFile(output, job.File(), found.Text, configs.LoadOptions{Set: found.Set, Date: c.String("date")}); err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, struct {
					Output  string         `json:"output"`
					Set     []string       `json:"set"`
					Rounds  []tune.Round   `json:"rounds"`
					Results []*tune.Result `json:"results"`
				}{output, found.Set, found.Rounds, found.Results})
			}
			table, err := found.Table(found.Rounds)
			if err != nil {
				return err
			}
			has := " has the best settings.\n"
			switch added := found.Set[len(o.Load.Set):]; {
			case len(added) == 0:
				has = " has the settings of the original job.\n"
			case found.Result.Trial == 0: // it is measured after its best epoch
				has = " has the settings of the original job, except for " + strings.Join(added, " ") + ".\n"
			}
			return cmdline.WriteLines(c.App.Writer, table+output+has)
		},
	}
}

// tuneOptions are what the flags ask for, and the path of the job file to write.
func tuneOptions(c *cli.Context, job *configs.Job) (o tune.Options, output string, err error) {
	bad := func(flag, format string, args ...any) error {
		return cliargs.Errorf("%s: --%s %v: %s", cliargs.CommandPath(c), flag, c.Value(flag), fmt.Sprintf(format, args...))
	}
	log := cmdline.NewLogger(c)
	o = tune.Options{
		Job: job, Load: configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")},
		Trials: c.Int("trials"), Groups: cmdline.SplitNames(c.String("over")), MaxEpochs: c.Int("epochs"), Metric: tune.Metric(c.String("metric")),
		Examples: c.Int64("examples"), ValidationFraction: c.Float64("validation-fraction"), Seed: c.Uint64("seed"), Fresh: c.Bool("fresh"),
		Logger: log, Version: version,
		Watch: func(s *report.Status) func() {
			return jobview.Watch(cmdline.ConsoleOf(c), s, slog.New(slog.DiscardHandler)).Stop
		},
	}
	if !c.IsSet("validation-fraction") {
		o.ValidationFraction = cmp.Or(job.Data.ValidationFraction, 0.1)
	}
	for _, g := range o.Groups {
		if !slices.Contains(tune.Groups, g) {
			return o, "", bad("over", "want a list of %s.%s", strings.Join(tune.Groups, ", "), cliargs.DidYouMean("", g, tune.Groups))
		}
	}
	switch {
	case o.Trials < 2 || o.Trials > 1000:
		return o, "", bad("trials", "want a number from 2 to 1000")
	case o.MaxEpochs < 1 || o.MaxEpochs > 1000:
		return o, "", bad("epochs", "want a number from 1 to 1000")
	case c.IsSet("epochs") && !slices.Contains(o.Groups, tune.Epochs):
		return o, "", bad("epochs", "--over does not include epochs, so each trial trains for training.epochs; change that with --set")
	case c.IsSet("epochs") && job.Training.EarlyStopping != nil:
		return o, "", bad("epochs", "the job has training.early_stopping, which ends each trial within training.epochs; change that with --set")
	case o.Metric != tune.LogLoss && o.Metric != tune.AUC:
		return o, "", bad("metric", "want log_loss or auc")
	case o.Examples < 0 || c.IsSet("examples") && o.Examples == 0:
		return o, "", bad("examples", "want a number above 0")
	case !(o.ValidationFraction > 0 && o.ValidationFraction <= 0.5):
		return o, "", bad("validation-fraction", "want a share above 0, at most 0.5")
	case len(tune.Space(job, o.Groups)) == 0 && !slices.Contains(o.Groups, tune.Epochs):
		return o, "", bad("over", "this leaves nothing to vary in a model of kind %s", job.Model.Kind)
	}
	if o.Dir, err = cmdline.PathFlag(c, job, "dir"); err != nil {
		return o, "", err
	}
	if o.Dir == "" {
		o.Dir = filepath.Clean(job.Output.ModelDir) + "-tune"
	}
	if output, err = cmdline.PathFlag(c, job, "output"); err != nil {
		return o, "", err
	}
	if output == "" {
		extension := filepath.Ext(job.File())
		output = strings.TrimSuffix(job.File(), extension) + "-tuned" + extension
	}
	return o, output, nil
}

// checkTunedFile refuses, before hours of training, a file that could not be written.
func checkTunedFile(c *cli.Context, job *configs.Job, output, dir string) error {
	if _, err := os.Lstat(output); err == nil {
		return cliargs.Errorf("%s: %s exists; delete it, or name another file with --output", cliargs.CommandPath(c), output)
	}
	probe, err := os.CreateTemp(filepath.Dir(output), ".aibox-tune-*")
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return refuseOverwrite(c.Context, job, cmdline.NewLogger(c), []string{output, filepath.Join(dir, tune.JournalName), filepath.Join(dir, "trial", modeldir.ManifestName)})
}

// writeTunedFile writes the text of the job file with overrides. If they cannot be written into it, the error
// says how to give them on the command line.
func writeTunedFile(output, file string, text []byte, load configs.LoadOptions) error {
	tuned, err := configs.Edited(file, text, load)
	if err != nil {
		var flags []string
		for _, s := range load.Set {
			flags = append(flags, "--set "+humanize.ShellWord(s))
		}
		return errkind.Errorf(errkind.Job, "the best settings were found but not written: %w; give them on the command line: %s", err, strings.Join(flags, " "))
	}
	return disk.WriteFile(output, tuned)
}

// refuseOverwrite fails if a file to be written is one that the job reads.
func refuseOverwrite(ctx context.Context, job *configs.Job, log *slog.Logger, outputs []string) error {
	sources := jobsource.New(job, log)
	return errors.Join(sources.RefuseOverwrite(ctx, trainer.Inputs(job), outputs), sources.Close())
}
