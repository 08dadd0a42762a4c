package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// leaveLinks lets the current directory be known by its path without symbolic links. A shell keeps
// the way through links in $PWD, which package os believes: with it, "../ssd" made absolute would
// be another directory than the one that the system opens by this name.
func leaveLinks() {
	var path [unix.PathMax]byte
	n, err := unix.Getcwd(path[:])
	if err != nil || n < 2 || path[0] != '/' { // it was deleted, or lies outside of the root: relative paths say so themselves
		return
	}
	_ = os.Setenv("PWD", string(path[:n-1])) // it fails for texts with a zero byte alone
}
