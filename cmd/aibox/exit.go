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
	var again *trainer.ResumableError
	switch kind {
	case errkind.Interrupted:
		if errors.As(err, &again) {
			return "interrupted; " + again.Advice()
		}
		return "interrupted"
	case errkind.Internal:
		return fmt.Sprintf("%v\nThis looks like a fault of aibox itself; please report it with the job file and the log.", err)
	}
	if errors.Is(err, sparsetable.ErrBudget) && errors.Is(err, sparsetable.ErrMemory) {
		return fmt.Sprintf("%v\nLet aibox have more memory.", err)
	}
	if errors.Is(err, sparsetable.ErrBudget) {
		return fmt.Sprintf("%v\nGive the table more memory: sparse_table.memory_bytes in the job file, or --memory of \"aibox table\".", err)
	}
	if errors.Is(err, sparsetable.ErrMemory) {
		return fmt.Sprintf("%v\nSet sparse_table.kind: ssd in the job file, which keeps the table within sparse_table.memory_bytes, or let aibox have more memory.", err)
	}
	if errors.Is(err, sparsetable.ErrFiles) {
		return fmt.Sprintf("%v\nCheck that each of its directories exists and its file system is mounted. The table's rows are spread over all of its directories, so it cannot be used without one of them: if one is lost, restore all of them from copies of the same time, or train again. If the table belongs to no model, name all of its directories: the first as the argument, the others by --dir.", err)
	}
	if left := disk.InodesLeft(err); left != "" {
		return fmt.Sprintf("%v\nIt is probably files, not bytes, that there is no room for: %s (df -i). Delete files there.", err, left)
	}
	if errors.Is(err, gpu.ECC) {
		return fmt.Sprintf("%v\nIf that happens again, the memory of the device is failing (`nvidia-smi -q -d ECC` counts its errors): let engine.devices name another one.", err)
	}
	if errors.Is(err, gpu.DeviceLost) {
		return fmt.Sprintf("%v\nThe log of the system says why (`dmesg | grep Xid`). The device needs a reset (`nvidia-smi --gpu-reset`), or the machine a restart, or engine.devices has to name another one.", err)
	}
	return err.Error()
}
