package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/panics"
	"aibox/internal/rowfile"
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

// exitCode classifies what a command returned.
func exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)), errors.Is(err, context.Canceled):
		return exitInterrupted
	case isA[*panics.Error](err):
		return exitInternal
	case isA[*cliargs.Error](err), isA[configs.FaultsError](err), isA[*trainer.OptionError](err), isA[*reader.OptionsError](err), isA[*source.OverwriteError](err), isA[*sparsetable.OptionsError](err),
		errors.Is(err, sparsetable.ErrBudget), errors.Is(err, model.ErrNotFinite), errors.Is(err, metrics.ErrNotFinite),
		errors.Is(err, modeldir.ErrLocked), errors.Is(err, sparsetable.ErrInUse), errors.Is(err, sparsetable.ErrUnsupported):
		return exitUsage
	case isA[*reader.BadRowsError](err), isA[*reader.LostDataError](err), isA[*reader.InputError](err), isA[*rowfile.FormatError](err),
		errors.Is(err, reader.ErrNoExamples), errors.Is(err, source.ErrBadStream):
		return exitData
	case isA[*source.Error](err), isA[*source.CorruptError](err),
		isA[*sparsetable.CorruptionError](err), isA[*modeldir.CorruptionError](err),
		errors.Is(err, sparsetable.ErrNoSnapshot), errors.Is(err, sparsetable.ErrNoSpace), errors.Is(err, sparsetable.ErrFiles), isA[*faultsError](err), errors.Is(err, errNoTable),
		errors.Is(err, modeldir.ErrNoModel), errors.Is(err, modeldir.ErrNewer),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrShortWrite),
		isA[*fs.PathError](err), isA[*os.LinkError](err), isA[*os.SyscallError](err), isA[unix.Errno](err):
		return exitIO
	}
	return exitInternal
}

func isA[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// explain is the text for an error that ends the program.
func explain(code int, err error) string {
	switch code {
	case exitInterrupted:
		return "interrupted"
	case exitInternal:
		return fmt.Sprintf("%v\nThis looks like a fault of aibox itself; please report it with the job file and the log.", err)
	}
	if errors.Is(err, sparsetable.ErrBudget) {
		return fmt.Sprintf("%v\nGive the table more memory: sparse_table.memory_bytes in the job file, or --memory of \"aibox table\".", err)
	}
	if errors.Is(err, sparsetable.ErrFiles) {
		return fmt.Sprintf("%v\nIs each of its directories there, its file system mounted? Of a table that belongs to no model all are to be named: the first, and the others by --dir of \"aibox table\".", err)
	}
	return err.Error()
}
