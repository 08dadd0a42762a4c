package main

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// errInterrupted is the cause of a context that a signal cancelled.
var errInterrupted = errors.New("interrupted")

// withSignals returns a context that the first SIGINT or SIGTERM cancels, so
// that the job ends at the next mini-batch. The second one ends the process at
// once. A signal that the process was started to ignore, as a shell does for
// jobs in the background, stays ignored.
func withSignals(ctx context.Context, c *console) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			// First, and not behind a write that hangs.
			cancel(errInterrupted)
		case <-done:
			return
		}
		told := make(chan struct{})
		go func() {
			c.notice("interrupted: stopping cleanly, before the next mini-batch; once more stops at once")
			close(told)
		}()
		select {
		case <-signals:
			c.leave()
			os.Exit(exitInterrupted)
		case <-done:
			<-told
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
