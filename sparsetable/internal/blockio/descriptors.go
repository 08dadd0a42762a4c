package blockio

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"aibox/internal/process"
)

// A table holds a descriptor for each of its files, so that a read needs no other system call. Go
// raises the soft limit of descriptors to the hard limit when a process starts; only the user can
// raise the hard limit.

// withLimit adds the limit of descriptors, and what to do, to the error of an open that failed
// because the process has no descriptor left.
func withLimit(err error) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EMFILE) || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return err
	}
	return fmt.Errorf("%w: this process may have %d files open, and each file of a table takes one; raise the limit (%s), and drop snapshots that are not needed", err, limit.Cur, process.RaiseFiles)
}
