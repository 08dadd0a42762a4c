package main

import (
	"errors"
	"fmt"
	"strings"

	"aibox/gpu"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer"
)

// exitDone is the exit code of a command that succeeded. The codes of failures are in
// package errkind.
const exitDone = 0

// exitCodes says what the exit codes mean, in one line each.
func exitCodes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %3d  done", exitDone)
	for _, k := range errkind.All {
		fmt.Fprintf(&b, "\n  %3d  %s", k.ExitCode(), k.Text())
	}
	return b.String()
}

// explain returns the message about an error that ends the program.
func explain(kind errkind.Kind, err error) string {
	if kind == errkind.Interrupted {
		var again *trainer.ResumableError
		if errors.As(err, &again) {
			return "interrupted; " + again.Advice()
		}
		return "interrupted"
	}
	if text := advice(kind, err); text != "" {
		return err.Error() + "\n" + text
	}
	return err.Error()
}

// advice says what to do about an error where that is not a part of the error; "": it is.
func advice(kind errkind.Kind, err error) string {
	budget, memory := errors.Is(err, sparsetable.ErrBudget), errors.Is(err, sparsetable.ErrMemory)
	left := disk.InodesLeft(err)
	switch {
	case kind == errkind.Internal:
		return "This looks like a bug in aibox; please report it with the job file and the log."
	case budget && memory:
		return "Make more memory available to aibox: raise the memory limit of its container or control group, or end other programs."
	case budget:
		return "Give the table more memory: sparse_table.memory_bytes in the job file, or --memory of \"aibox table\"."
	case memory:
		return "Set sparse_table.kind: ssd in the job file, which keeps the table within sparse_table.memory_bytes, or make more memory available to aibox."
	case errors.Is(err, sparsetable.ErrFiles):
		return "Check that each directory of the table exists and that its file system is mounted. The table's rows are spread over all of its directories, so it cannot be used without one of them: if one is lost, restore all of them from copies of the same time, or train again. If the table belongs to no model, name all of its directories: the first as the argument, the others with --dir."
	case left != "":
		return fmt.Sprintf("The file system has probably run out of inodes, not of bytes: %s (df -i). Delete files there.", left)
	case errors.Is(err, gpu.ECC):
		return "If this happens again, the memory of the device is failing (`nvidia-smi -q -d ECC` counts its errors): choose another device in engine.devices."
	case errors.Is(err, gpu.DeviceLost):
		return "The system log says why (`dmesg | grep Xid`). Reset the device (`nvidia-smi --gpu-reset`), restart the machine, or choose another device in engine.devices."
	}
	return ""
}
