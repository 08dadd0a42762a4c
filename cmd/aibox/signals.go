package main

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"aibox/internal/errkind"
	"aibox/internal/panics"
	"aibox/internal/terminal"
)

// errInterrupted is the cause of a context that a signal cancelled.
var errInterrupted = errors.New("interrupted")

// withSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, so that the
// command ends in an orderly way. A second signal ends the process at once. A SIGHUP that nohup
// made the process ignore stays ignored.
func withSignals(ctx context.Context, c *terminal.Console) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(signals, unix.SIGHUP)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	panics.Go("waiting for signals", func() {
		defer close(ended)
		select {
		case <-signals:
			// This comes before the notice, whose write may hang.
			cancel(errInterrupted)
		case <-done:
			return
		}
		over := make(chan struct{})
		panics.Go("the notice of an interruption", func() {
			c.Notice("interrupted: ending cleanly; a second signal ends the program at once")
			<-done
			close(over)
		})
		select {
		case <-signals:
			c.Leave()
			os.Exit(errkind.Interrupted.ExitCode())
		case <-over:
		}
	})
	return ctx, func() {
		close(done)
		<-ended // the notice is written, or it hangs and a second signal ends it all
		signal.Stop(signals)
		cancel(nil)
	}
}
