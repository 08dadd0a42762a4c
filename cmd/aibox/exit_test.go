package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/panics"
	"aibox/internal/terminal"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer"
	"aibox/trainer/modeldir"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("nobody knows it"), exitInternal},
		{&panics.Error{Value: context.Canceled}, exitInternal},
		{reader.AsInputError(context.Background(), &panics.Error{}), exitInternal},
		{cliargs.Errorf("no such flag"), exitUsage},
		{configs.FaultsError{{}}, exitUsage},
		{&trainer.OptionError{Err: errors.New("x")}, exitUsage},
		{&reader.OptionsError{Err: errors.New("x")}, exitUsage},
		{&sparsetable.OptionsError{Err: errors.New("x")}, exitUsage},
		{sparsetable.ErrBudget, exitUsage},
		{sparsetable.ErrInUse, exitUsage},
		{sparsetable.ErrNoSpace, exitIO},
		{sparsetable.ErrFiles, exitIO},
		{modeldir.ErrLocked, exitUsage},
		{&reader.BadRowsError{}, exitData},
		{&reader.LostDataError{}, exitData},
		{&reader.InputError{Err: errors.New("x")}, exitData},
		{reader.ErrNoExamples, exitData},
		{&source.Error{Kind: source.ErrBadStream}, exitData},
		{&source.Error{Kind: source.ErrNotFound}, exitIO},
		{&source.Error{Kind: source.ErrConfig}, exitIO},
		{&source.CorruptError{Err: errors.New("x")}, exitIO},
		{&sparsetable.CorruptionError{}, exitIO},
		{&modeldir.CorruptionError{}, exitIO},
		{modeldir.ErrNoModel, exitIO},
		{modeldir.ErrNewer, exitIO},
		{&fs.PathError{Op: "open", Path: "x", Err: unix.ENOENT}, exitIO},
		{&os.LinkError{Op: "rename", Err: unix.EXDEV}, exitIO},
		{unix.ENOSPC, exitIO},
		{context.Canceled, exitInterrupted},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("stage RE: %w", err)
		}
		if have := exitCode(context.Background(), err); have != c.want {
			t.Errorf("%v: exit %d, want %d", err, have, c.want)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	if have := exitCode(ctx, fmt.Errorf("reading: %w", errInterrupted)); have != exitInterrupted {
		t.Errorf("interrupted: exit %d", have)
	}
	// What failed on its own is not hidden by an interrupt.
	if have := exitCode(ctx, unix.ENOSPC); have != exitIO {
		t.Errorf("full disk while interrupted: exit %d", have)
	}
}

// TestOnlyOurOwnFaultsAskForReports: people must not report their own mistakes.
func TestOnlyOurOwnFaultsAskForReports(t *testing.T) {
	for code := range 5 {
		if asks := strings.Contains(explain(code, errors.New("x")), "please report"); asks != (code == exitInternal) {
			t.Errorf("exit %d: asks for a report: %v", code, asks)
		}
	}
}

func TestPanicIsOurOwnFault(t *testing.T) {
	var stderr strings.Builder
	con := terminal.New(&stderr, false)
	if code := run(context.Background(), []string{"aibox", "version"}, panicWriter{}, con); code != exitInternal {
		t.Errorf("exit %d, want %d", code, exitInternal)
	}
	if !strings.Contains(stderr.String(), "out of ink") || !strings.Contains(stderr.String(), "please report") {
		t.Errorf("standard error: %s", stderr.String())
	}
}

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("out of ink") }

func TestFailedResultsAreErrors(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range []string{"version", "help", "train --help", "config init", "completion bash"} {
		var stderr strings.Builder
		code := run(context.Background(), append([]string{"aibox"}, strings.Fields(args)...), full, terminal.New(&stderr, false))
		if code != exitIO || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s > /dev/full: exit %d: %s", args, code, stderr.String())
		}
	}
}
