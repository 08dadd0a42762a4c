package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
)

// Exit codes, as the help text and README document them.
const (
	exitDone        = 0
	exitInternal    = 1 // a fault of our own
	exitUsage       = 2 // bad usage or job file
	exitData        = 3 // bad rows past the limit, or no usable data
	exitIO          = 4
	exitInterrupted = 130
)

// usageError is a mistake on the command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "aibox"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != name {
		name += " " + c.Command.Name
	}
	return usageErrorf("%s: %v; see `%s --help`", name, err, name)
}

// exitCode classifies what a command returned.
func exitCode(ctx context.Context, err error) int {
	var (
		usage      *usageError
		option     *trainer.OptionError
		faults     configs.FaultsError
		badRows    *reader.BadRowsError
		badSource  *source.CorruptError
		badTable   *sparsetable.CorruptionError
		badModel   *modeldir.CorruptionError
		path       *fs.PathError
		link       *os.LinkError
		syscallErr *os.SyscallError
		errno      unix.Errno
	)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &faults), errors.As(err, &option),
		errors.Is(err, sparsetable.ErrBudget), errors.Is(err, model.ErrNotFinite), errors.Is(err, metrics.ErrNotFinite),
		errors.Is(err, modeldir.ErrLocked):
		return exitUsage
	case errors.As(err, &badRows), errors.Is(err, reader.ErrNoExamples):
		return exitData
	case errors.As(err, &badSource), errors.As(err, &badTable), errors.As(err, &badModel),
		errors.Is(err, source.ErrNotFound), errors.Is(err, source.ErrPermission), errors.Is(err, source.ErrUnavailable),
		errors.Is(err, sparsetable.ErrNoSnapshot), errors.Is(err, modeldir.ErrNoModel),
		errors.As(err, &path), errors.As(err, &link), errors.As(err, &syscallErr), errors.As(err, &errno):
		return exitIO
	}
	return exitInternal
}

// explain is the text for an error that ends the program.
func explain(code int, err error) string {
	switch code {
	case exitInterrupted:
		return "aibox: interrupted"
	case exitInternal:
		return fmt.Sprintf("aibox: %v\nThis looks like a fault of aibox itself; please report it with the job file and the log.", err)
	}
	return fmt.Sprintf("aibox: %v", err)
}
