package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/internal/cliargs"
	"aibox/internal/errkind"
	"aibox/internal/panics"
	"aibox/internal/rowfile"
	"aibox/internal/terminal"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
	"aibox/trainer/program"
)

// TestExitCodes checks that README.md and --help document every exit code, and no others.
func TestExitCodes(t *testing.T) {
	want := map[errkind.Kind]int{
		errkind.Internal: exitInternal, errkind.Usage: exitUsage, errkind.Data: exitData, errkind.IO: exitIO, errkind.Job: exitJob,
		errkind.Locked: exitLocked, errkind.LostData: exitLostData, errkind.Diverged: exitDiverged, errkind.Interrupted: exitInterrupted,
	}
	help, readme := ok(t, "--help"), read(t, "../../README.md")
	for _, k := range errkind.All {
		if k.ExitCode() != want[k] {
			t.Errorf("%v: exit code %d, want %d", k, k.ExitCode(), want[k])
		}
		if line := fmt.Sprintf("%3d  %s\n", k.ExitCode(), k.Text()); !strings.Contains(help, line) {
			t.Errorf("--help lacks %q", line)
		}
		if line := fmt.Sprintf("| %d | `%s` | %s |\n", k.ExitCode(), k, k.Text()); !strings.Contains(readme, line) {
			t.Errorf("README.md lacks %q", line)
		}
	}
}

// TestKindsOfErrors checks that errors of the packages below have the right kind.
func TestKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want errkind.Kind
	}{
		{errors.New("nobody knows it"), errkind.Internal},
		{&panics.Error{Value: unix.ENOENT}, errkind.Internal},
		{&panics.Error{Value: context.Canceled}, errkind.Internal},
		{reader.AsInputError(context.Background(), &panics.Error{}), errkind.Internal},
		{cliargs.Errorf("no such flag"), errkind.Usage},
		{configs.FaultsError{{}}, errkind.Job},
		{&reader.OptionsError{Err: errors.New("x")}, errkind.Usage},
		{&sparsetable.OptionsError{Err: errors.New("x")}, errkind.Usage},
		{&sparsetable.LayoutError{}, errkind.Usage},
		{&source.OverwriteError{}, errkind.Usage},
		{sparsetable.ErrBudget, errkind.Usage},
		{&sparsetable.BudgetError{}, errkind.Usage},
		{&sparsetable.BudgetError{LackingBytes: 1}, errkind.Job},
		{sparsetable.ErrUnsupported, errkind.Usage},
		{sparsetable.ErrInUse, errkind.Locked},
		{sparsetable.ErrNoSpace, errkind.IO},
		{sparsetable.ErrFiles, errkind.IO},
		{modeldir.ErrLocked, errkind.Locked},
		{program.ErrNotFinite, errkind.Diverged},
		{metrics.ErrNotFinite, errkind.Diverged},
		{&reader.BadRowsError{}, errkind.Data},
		{&reader.LostDataError{}, errkind.LostData},
		{&reader.InputError{Err: io.ErrUnexpectedEOF}, errkind.Data},
		{&rowfile.FormatError{Err: io.ErrUnexpectedEOF}, errkind.Data},
		{reader.ErrNoExamples, errkind.Data},
		{&source.Error{Kind: source.ErrBadStream}, errkind.Data},
		{source.ErrBadStream, errkind.Data},
		{&source.Error{Kind: source.ErrNotFound}, errkind.IO},
		{&source.Error{Kind: source.ErrConfig}, errkind.IO},
		{&source.CorruptError{Err: errors.New("x")}, errkind.IO},
		{&sparsetable.CorruptionError{}, errkind.IO},
		{&modeldir.CorruptionError{}, errkind.IO},
		{modeldir.ErrNoModel, errkind.IO},
		{errkind.ErrNewer, errkind.IO},
		{&tablecmd.FaultsError{}, errkind.IO},
		{tablecmd.ErrNoTable, errkind.IO},
		{unix.ENOSPC, errkind.IO},
		{context.Canceled, errkind.Interrupted},
	} {
		if have := errkind.Of(context.Background(), fmt.Errorf("stage RE: %w", c.err)); have != c.want {
			t.Errorf("%v: %v, want %v", c.err, have, c.want)
		}
	}
}

// TestOnlyOurOwnFaultsAskForReports checks that only errors that are faults of aibox ask the user
// to report them.
func TestOnlyOurOwnFaultsAskForReports(t *testing.T) {
	for _, kind := range errkind.All {
		if asks := strings.Contains(explain(kind, errors.New("x")), "please report"); asks != (kind == errkind.Internal) {
			t.Errorf("%v: asks for a report: %v", kind, asks)
		}
	}
}

// TestDeviceFaultsSayWhatToDo checks that a device that fails is not reported as a fault of the
// job.
func TestDeviceFaultsSayWhatToDo(t *testing.T) {
	for kind, words := range map[gpu.Kind]string{gpu.ECC: "nvidia-smi -q -d ECC", gpu.DeviceLost: "dmesg"} {
		if text := explain(errkind.IO, fmt.Errorf("stage EL+JL: %w", &gpu.Error{Kind: kind, Device: 1})); !strings.Contains(text, "device 1: ") || !strings.Contains(text, words) {
			t.Errorf("%v: %s", kind, text)
		}
	}
}

// TestConfigSaysDeviceMemory checks that the forecast is also made without a device, and that the
// missing device is no error.
func TestConfigSaysDeviceMemory(t *testing.T) {
	if cuda.Built {
		t.Skip("this machine may have devices")
	}
	inSmallJob(t)
	for _, command := range []string{"check", "show"} {
		text := ok(t, "config", command, "job.yaml", "--set", "engine={kind: cuda, devices: [0, 1]}")
		for _, words := range []string{"Memory of each device, for mini-batches of ", " divided among 2 devices", "gradients ", "pinned memory of the host ", "a device, because none is available", "make build-cuda"} {
			if !strings.Contains(text, words) {
				t.Errorf("config %s does not say %q: %s", command, words, text)
			}
		}
		if text := ok(t, "config", command, "job.yaml"); strings.Contains(text, "each device") {
			t.Errorf("config %s: %s", command, text)
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
	inSmallJob(t)
	for args, want := range map[string]string{
		"version": "", "help": "", "train --help": "", "config init": "", "completion bash": "",
		"train job.yaml": "the model in model is complete", // so nobody trains it again
	} {
		var stderr strings.Builder
		code := run(context.Background(), append([]string{"aibox"}, strings.Fields(args)...), full, terminal.New(&stderr, false))
		if code != exitIO || !strings.Contains(stderr.String(), "no space left") || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s > /dev/full: exit %d: %s", args, code, stderr.String())
		}
	}
}
