package trainer

import (
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sys/unix"

	"aibox/internal/humanize"
	"aibox/internal/process"
)

// fewSteps is a number of optimizer steps below which the weights of a dense network
// are still close to their initial values, whatever the data.
const fewSteps = 100

// warnings lists circumstances that made this run's model worse than it could be.
func warnings(r *run) []string {
	out := append(slices.Clone(r.state.Warnings), r.data.Warnings()...)
	steps := r.state.Engine.Step - r.state.Engine.FirstStep
	if warmup := r.job.Optimizer.Schedule.WarmupSteps; warmup > 0 && steps <= warmup {
		out = append(out, fmt.Sprintf("training ended after %d steps, within optimizer.schedule.warmup_steps: %d; the learning rate never reached its full value", steps, warmup))
	} else if steps < fewSteps && r.job.Training.WarmStart == "" {
		out = append(out, fmt.Sprintf("the model is the result of only %s; for so few examples a smaller training.batch_size or more training.epochs will serve better", humanize.Count(steps, "optimizer step")))
	}
	if text := r.oneLabel(); text != "" {
		out = append(out, text)
	}
	if n := len(r.state.Epochs); n > 0 {
		if where, e := r.state.Epochs[n-1].Decisive(); e != nil && e.AUC.Defined() && e.AUC < 0.5 {
			out = append(out, fmt.Sprintf("AUC on %s is %.3f, worse than chance", where, float64(e.AUC)))
		}
	}
	return out
}

// A job may fail if it can have fewer threads or open files than these: with a table on SSD in two
// directories and snapshots elsewhere, a small job had 27 threads on two cores, and 50 open files;
// large tables have more files.
const (
	fewThreads = 64
	fewFiles   = 256
)

// warnOfLimits warns of limits of the process that may not suffice. Where address space or threads
// run out, Go's runtime ends the program with a message of its own.
func warnOfLimits(log *slog.Logger) {
	if limit := process.AddressSpaceLimit(); limit > 0 {
		log.Warn("the address space is limited (ulimit -v): if it is too low, Go's runtime ends the program with exit code 2 and without a summary; a program needs more addresses than memory, so it is better to limit its memory, by a control group",
			"limit_bytes", limit)
	}
	if free := process.FreeThreads(); free >= 0 && free < fewThreads {
		log.Warn("the number of threads is limited (TasksMax= in a systemd unit, --pids-limit of a container, ulimit -u): if it is too low, Go's runtime ends the program with exit code 2 and without a summary",
			"free_threads", free)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < fewFiles {
		log.Warn("the number of open files is limited ("+process.RaiseFiles+"): if it is too low, snapshots fail, or the whole job does; each file of a table on SSD takes one",
			"limit", files.Cur)
	}
}
