package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// leaveLinks sets $PWD to the current directory's path without symbolic links. A shell keeps
// symbolic links in $PWD, and package os trusts it: an absolute form of "../ssd" computed from it
// would be another directory than the one that the system opens under this name.
func leaveLinks() {
	var path [unix.PathMax]byte
	n, err := unix.Getcwd(path[:])
	if err != nil || n < 2 || path[0] != '/' { // it was deleted, or lies outside of the root: relative paths say so themselves
		return
	}
	_ = os.Setenv("PWD", string(path[:n-1])) // it fails for texts with a zero byte alone
}
