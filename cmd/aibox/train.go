package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/gpu/profiled"
	"aibox/internal/jobview"
	"aibox/internal/profiling"
	"aibox/trainer"
	"aibox/trainer/report"
)

func trainCommand() *cli.Command {
	return &cli.Command{
		Name:      "train",
		Usage:     "train the model that a job file describes",
		ArgsUsage: "JOB.yaml",
		Description: `Reads the training data, trains, evaluates, and writes the model to the job's
output.model_dir, with summary.json, metrics.jsonl and TensorBoard events. The
previous model in that directory stays until the new one is complete. A job that
fails writes summary-failed.json there, which says why.

Only one run of a job trains on a machine at a time, whatever its date and paths. The
same holds for jobs that share a model directory. A second run waits as long as --wait
allows and then exits with code 6. A job is identified by its file and its name: to run
one file several times in parallel, give each run its own name with --set name=….

If a job is interrupted by a crash, a signal or a failing disk, run the same command
again: it resumes from its last snapshot and produces the same model as an uninterrupted
run. The section snapshots of the job file sets how often a snapshot is taken. Ctrl-C
and SIGTERM end the job after the current pass with a last snapshot; a second Ctrl-C
ends it at once. If the job file or the data have changed, training starts over, and the
log says what differs. If the disk of one of the table's directories fails, the job
restarts by itself.

With --profile, the job writes CPU, memory and lock contention profiles and an execution
trace, even if it fails or is interrupted once. The trace stops at 256 MiB. If DIR
already holds profiles, from an earlier run or from this one before it was killed, they
are kept, and the new ones go to DIR/2, DIR/3 and so on. With engine.kind cuda,
kernels.tsv has the time of each kernel, matrix product, copy and sum on each device.
To measure operations one by one, they are not captured as graphs, so the job is slower;
its model is the same. Stages and steps are marked for Nsight Systems with or without
--profile.

Examples:

  aibox train configs/criteo.yaml
  aibox train nightly.yaml --date 2026-11-20
  aibox train nightly.yaml --wait 2h
  aibox train job.yaml --set training.epochs=2 --set output.model_dir=models/two
  aibox train job.yaml --fresh
  aibox train job.yaml --profile profiles/{{date}}`,
		Flags: append(cmdline.JobFlags(), waitFlag(),
			&cli.BoolFlag{Name: "fresh", Usage: "start over: delete the snapshot of an interrupted run of this job"},
			&cli.StringFlag{Name: "profile", Usage: "write cpu.pprof, heap.pprof, allocs.pprof, mutex.pprof, block.pprof, trace.out and, for devices, kernels.tsv to `DIR`, or to DIR/2, DIR/3 and so on if DIR already holds profiles"},
		),
		Action: func(c *cli.Context) (err error) {
			// If nobody reads the output any more, for example because a program at the other end
			// of a pipe has ended, the job continues.
			signal.Ignore(unix.SIGPIPE)
			job, err := cmdline.LoadJob(c)
			if err != nil {
				return err
			}
			log := cmdline.NewLogger(c)
			until, err := waitUntil(c)
			if err != nil {
				return err
			}
			lock, err := lockJob(c, job, until, log)
			if err != nil {
				return err
			}
			defer cmdline.CloseWith(log, "the lock of the job", lock)
			times, stop, err := startProfiles(c, job, log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stop()) }()
			status := new(report.Status)
			d := jobview.Watch(cmdline.ConsoleOf(c), status, log)
			defer d.Stop()
			summary, err := trainer.Train(c.Context, job, trainer.Options{
				Logger: log, Status: status, Version: version, WaitUntil: until, Fresh: c.Bool("fresh"), KernelTimes: times,
			})
			d.Stop()
			if err != nil {
				return err
			}
			if err := jobview.PrintSummary(c.App.Writer, summary); err != nil {
				return fmt.Errorf("the model in %s is complete, and %s there contains the summary of the job, but the summary could not be printed: %w", job.Output.ModelDir, report.SummaryName, err)
			}
			return nil
		},
	}
}

// startProfiles starts recording the profiles that --profile asks for; stop completes them. The job
// must fill times, unless it is nil.
func startProfiles(c *cli.Context, job *configs.Job, log *slog.Logger) (times *profiled.Times, stop func() error, err error) {
	dir, err := cmdline.PathFlag(c, job, "profile")
	if err != nil || dir == "" {
		return nil, func() error { return nil }, err
	}
	named := dir
	if dir, err = profiling.FreeDir(named); err != nil {
		return nil, nil, err
	}
	if dir != named {
		log.Info("the directory given by --profile already holds profiles, of another run or of this one before it was interrupted; they are kept, and the new ones are written to a subdirectory", "there", named, "now", dir)
	}
	var files []string
	for _, name := range append(profiling.Files[:len(profiling.Files):len(profiling.Files)], profiling.KernelsFile) {
		files = append(files, filepath.Join(dir, name))
	}
	if err := refuseOverwrite(c.Context, job, log, files); err != nil {
		return nil, nil, err
	}
	o := profiling.Options{Dir: dir, Logger: log}
	if job.Engine.Kind == "cuda" {
		times = new(profiled.Times)
		o.Kernels = times.Write
	}
	s, err := profiling.Start(o)
	if err != nil {
		return nil, nil, err
	}
	return times, s.Stop, nil
}
