package blockio

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"aibox/internal/process"
)

// A table holds a descriptor for each of its files, so that a read needs no other system
// call. Go raises the soft limit of descriptors to the hard one when a process starts;
// only the user can raise that one.

// withLimit adds to the error of an open that failed because the process has no
// descriptor left how many it may have, and what to do.
func withLimit(err error) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EMFILE) || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return err
	}
	return fmt.Errorf("%w: this process may have %d files open, and each file of a table takes one; raise the limit (%s), and drop snapshots that are not needed", err, limit.Cur, process.RaiseFiles)
}
