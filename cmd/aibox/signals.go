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
// once.
func withSignals(ctx context.Context, c *console) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
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
			c.notice("interrupted: ending cleanly; once more ends at once")
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
