package main

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/joblock"
)

// waitFlag says how long a run waits for another one.
func waitFlag() cli.Flag {
	return &cli.DurationFlag{Name: "wait", Usage: "maximum `TIME` to wait until another run of the job, or of a job with the same model directory, ends, such as 90m or 2h", DefaultText: "not at all"}
}

// waitUntil returns the deadline of a wait that starts now.
func waitUntil(c *cli.Context) (time.Time, error) {
	wait := c.Duration("wait")
	if wait < 0 {
		return time.Time{}, cliargs.Errorf("%s: --wait %s: want a duration of 0 or more, such as 2h", cliargs.CommandPath(c), wait)
	}
	return time.Now().Add(wait), nil
}

// lockJob takes the lock of a job, which is held until the result is closed.
func lockJob(c *cli.Context, job *configs.Job, until time.Time, log *slog.Logger) (io.Closer, error) {
	return lockName(c, job.File(), job.PlainName(), until, "wait until it ends (--wait 2h)", log)
}

// lockName is lockJob for a job given by its file and a name. toWait says how to wait, in errors.
func lockName(c *cli.Context, file, name string, until time.Time, toWait string, log *slog.Logger) (io.Closer, error) {
	lock, err := joblock.Take(c.Context, file, name, until, func(process int) {
		log.Info("another run of the job is in progress; waiting until it ends", "job", file, "name", name, "process", process, "until", until.Format(time.DateTime))
	})
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, joblock.ErrLocked):
		return nil, errors.Join(err, errors.New(toWait+", or, to run both at the same time, give this run its own name: --set name=…"))
	case c.Context.Err() != nil:
		return nil, err
	}
	log.Warn("the job could not be locked; another run of the same job may start while this one is running", "error", err)
	return io.NopCloser(nil), nil
}
