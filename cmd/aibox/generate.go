package main

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/clicklog"
	"aibox/internal/errkind"
	"aibox/internal/generate"
	"aibox/internal/jobview"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
)

func generateCommand() *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "write a click log drawn from a known model",
		ArgsUsage: "JOB.yaml",
		Description: `Draws examples from the model in the job file's generate section, in the job's
format, and writes the job's data.train and data.eval files, or one file with
--output. Prints the AUC and log loss of the true probabilities, the best that any
model can reach. The same job always gives the same bytes.

Examples:

  aibox generate configs/demo.yaml
  aibox generate configs/demo.yaml --output day3.tsv.gz --day 3 --rows 1000000
  aibox generate job.yaml --output hdfs://nn:8020/logs/day0.parquet --rows 5000000 --set data.format=parquet`,
		Flags: append(cmdline.JobFlags(),
			&cli.StringFlag{Name: "output", Usage: "write one `FILE` instead of the job's files; local or hdfs://…, compressed by its extension"},
			&cli.Int64Flag{Name: "rows", Usage: "`NUMBER` of training examples, or of examples in --output", DefaultText: "generate.train_examples"},
			&cli.Int64Flag{Name: "eval-rows", Usage: "`NUMBER` of evaluation examples", DefaultText: "generate.eval_examples"},
			&cli.IntFlag{Name: "day", Usage: "with --output: the `DAY` whose examples are drawn, counted from 0"},
			&cli.Int64Flag{Name: "first", Usage: "with --output: `INDEX` of the first example within its day, counted from 0"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			job, err := cmdline.LoadJob(c)
			if err != nil {
				return err
			}
			if job.Generate == nil {
				return cliargs.Errorf("%s has no generate section, which says what to draw; see configs/demo.yaml and docs/job-file.md", c.Args().First())
			}
			output, err := cmdline.PathFlag(c, job, "output")
			if err != nil {
				return err
			}
			if err := checkGenerateFlags(c, job, output); err != nil {
				return err
			}
			results, err := writeLog(c, job, output)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return cmdline.PrintJSON(c.App.Writer, results)
			}
			return printTruth(c, results)
		},
	}
}

func checkGenerateFlags(c *cli.Context, job *configs.Job, out string) error {
	if out == "" && (c.IsSet("day") || c.IsSet("first")) {
		return cliargs.Errorf("aibox generate: --day and --first need --output")
	}
	if out != "" && c.IsSet("eval-rows") {
		return cliargs.Errorf("aibox generate: --eval-rows and --output exclude each other; with --output, give --rows")
	}
	for _, name := range []string{"rows", "eval-rows", "first"} {
		if c.Int64(name) < 0 {
			return cliargs.Errorf("aibox generate: --%s %d: want 0 or more", name, c.Int64(name))
		}
	}
	if c.Int("day") < 0 {
		return cliargs.Errorf("aibox generate: --day %d: want 0 or more", c.Int("day"))
	}
	if f, err := formatOf("", out, "--output"); out != "" && err == nil && f.String() != job.Data.Format {
		return cliargs.Errorf("aibox generate: --output %s: according to its name, its format is %v, but data.format is %s; add --set data.format=%v, or give the file another name", out, f, job.Data.Format, f)
	}
	return nil
}

func writeLog(c *cli.Context, job *configs.Job, out string) ([]clicklog.Result, error) {
	log := cmdline.NewLogger(c)
	g, err := generate.New(generatorConfig(job))
	if err != nil {
		return nil, errkind.As(errkind.Job, err)
	}
	schema, err := jobparts.Schema(job)
	if err != nil {
		return nil, errkind.As(errkind.Job, err)
	}
	sources := jobsource.New(job, log)
	defer cmdline.CloseWith(log, "sources", sources)
	outputs := slices.Concat(job.Data.Train, job.Data.Eval)
	if out != "" {
		outputs = []string{out}
	}
	if err := sources.RefuseOverwrite(c.Context, []string{job.File()}, outputs); err != nil {
		return nil, err
	}
	w, err := clicklog.New(g, sources, schema, job.Pipeline.ReaderThreads)
	if err != nil {
		return nil, errkind.As(errkind.Job, err)
	}
	rows, evalRows := job.Generate.TrainExamples, job.Generate.EvalExamples
	if c.IsSet("rows") {
		rows = c.Int64("rows")
	}
	if c.IsSet("eval-rows") {
		evalRows = c.Int64("eval-rows")
	}
	progress := func(file string, rows int64) { log.Info("generating", "file", file, "rows", rows) }
	if out != "" {
		meter := generate.NewMeter()
		part := clicklog.Part{Day: c.Int("day"), First: c.Int64("first"), Count: rows}
		if err := w.Write(c.Context, out, []clicklog.Part{part}, meter, func(n int64) { progress(out, n) }); err != nil {
			return nil, err
		}
		return []clicklog.Result{{Name: "output", Files: []string{out}, Truth: meter.Truth()}}, nil
	}
	return w.WriteJob(c.Context, clicklog.Plan{
		Train: job.Data.Train, Eval: job.Data.Eval, TrainRows: rows, EvalRows: evalRows, Days: job.Generate.Days,
	}, progress)
}

func generatorConfig(job *configs.Job) generate.Config {
	g := job.Generate
	cfg := generate.Config{
		Seed: job.Seed, DenseColumns: g.DenseColumns, BaseRate: g.BaseRate,
		LinearStrength: g.LinearStrength, InteractionStrength: g.InteractionStrength, LatentDim: g.LatentDim,
		DriftPerDay: g.DriftPerDay, MissingRate: g.MissingRate,
	}
	for _, f := range g.Fields {
		for i := range max(1, f.Repeat) {
			name := f.Name
			if f.Repeat > 1 {
				name = fmt.Sprintf("%s%d", f.Name, i+1)
			}
			cfg.Fields = append(cfg.Fields, generate.Field{Name: name, Cardinality: f.Cardinality, Skew: f.Skew, MaxValues: f.MaxValues})
		}
	}
	return cfg
}

func printTruth(c *cli.Context, results []clicklog.Result) error {
	t := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "metrics of the true probabilities, the best that any model can reach:")
	fmt.Fprintln(t, "set\texamples\tbase rate\tAUC\tlog loss\tnorm. entropy\tfiles")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%d, first %s\n", r.Name, r.Truth.Examples,
			jobview.Metric(r.Truth.BaseRate, 5), jobview.Metric(r.Truth.AUC, 5), jobview.Metric(r.Truth.LogLoss, 5), jobview.Metric(r.Truth.NormalizedEntropy, 5),
			len(r.Files), r.Files[0])
	}
	return t.Flush()
}
