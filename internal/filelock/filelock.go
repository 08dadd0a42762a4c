// Package filelock locks files and directories, so that processes keep out of one
// another's way.
//
// Locks are those of flock(2). A lock belongs to the open file, so it also excludes other users in
// this process, and it is released when that file is closed; the kernel closes the files of a
// process that ends for whatever reason. An exclusive lock excludes all others; shared locks
// exclude only exclusive ones. Locks are advisory. Anyone who can open a file for reading can lock
// it, although NFS requires it to be open for writing for an exclusive lock.
//
// A file that was deleted while it was locked can still be locked by processes that had opened it,
// which would not exclude later ones. Open and Wait therefore guarantee that the file was at its
// path when it was locked: if it was deleted meanwhile, they open the path again.
package filelock

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
)

// ErrHeld says that another open file has a lock that excludes the one that was asked for.
var ErrHeld = errors.New("the file is locked by another process")

// Kind is what a lock excludes.
type Kind int

// The kinds of locks.
const (
	Exclusive Kind = unix.LOCK_EX
	Shared    Kind = unix.LOCK_SH
)

// Open opens a file as os.OpenFile does and locks it until it is closed. It does not wait:
// the error is ErrHeld where the lock cannot be had now.
func Open(path string, flags int, perm fs.FileMode, kind Kind) (*os.File, error) {
	return open(path, flags, perm, int(kind)|unix.LOCK_NB)
}

// Wait opens a file as os.OpenFile does, and waits until it has its exclusive lock.
func Wait(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return open(path, flags, perm, unix.LOCK_EX)
}

func open(path string, flags int, perm fs.FileMode, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flags, perm)
		if err != nil {
			return nil, err
		}
		if err = lock(f, how); err == nil && !disk.Deleted(f) {
			return f, nil
		}
		_ = f.Close() // nothing was written
		if err != nil {
			return nil, err
		}
	}
}

// lock locks a file.
func lock(f *os.File, how int) error {
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err == unix.EWOULDBLOCK {
		return ErrHeld
	}
	if err != nil {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}
