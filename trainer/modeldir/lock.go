package modeldir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/filelock"
)

// There are three kinds of locks, all on files named LOCK. The run that writes holds the lock of
// the model directory and the locks of its table's directories elsewhere. Processes that read a
// model share the lock of its generation, so that the run that replaces the model does not delete
// files that are being read; the run after it deletes them. The kernel releases the locks of a
// process however it ends.

// lockDir takes the lock of a model directory. The lock is held until the file is closed.
func lockDir(dir string) (*os.File, error) {
	lock, err := filelock.Open(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644, filelock.Exclusive)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%s: %w: another process (`aibox train`, `aibox restore`, `aibox rollback` or `aibox table compact`) is writing it; wait until it ends (`aibox train --wait 2h` does that), or choose another output.model_dir", dir, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("model directory: %w", err)
	}
	return lock, nil
}

// lockPoll is how often WaitUnlocked checks whether a lock is free.
const lockPoll = 200 * time.Millisecond

// WaitUnlocked waits until no process has the lock of the model directory dir, or until
// the deadline.
func WaitUnlocked(ctx context.Context, dir string, deadline time.Time) error {
	for time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPoll):
		}
		lock, err := lockDir(dir)
		if err == nil {
			return lock.Close()
		}
		if !errors.Is(err, ErrLocked) {
			return nil // the run itself reports what is wrong, or makes the directory
		}
	}
	return nil
}

// lockReading takes the lock of a generation that its readers share. It returns nil if the lock
// cannot be taken, because the generation does not exist or this reader cannot lock its files. Only
// a process that deletes the generation holds the lock exclusively, and only for a moment.
func lockReading(gen string) *os.File {
	path := filepath.Join(gen, lockName)
	lock, err := filelock.Open(path, os.O_RDONLY, 0, filelock.Shared)
	if errors.Is(err, fs.ErrNotExist) { // made by an earlier version
		lock, err = filelock.Open(path, os.O_CREATE|os.O_RDONLY, 0o644, filelock.Shared)
	}
	if err != nil {
		return nil
	}
	return lock
}

// errRead says that a generation is not deleted because a process reads it.
var errRead = errors.New("another process is reading the model; the next run on this model directory deletes it")

// lockRemoving takes the lock of a generation that is to be deleted. If a reader holds it, the
// error is errRead. The result is nil if files cannot be locked.
func lockRemoving(gen string) (*os.File, error) {
	path := filepath.Join(gen, lockName)
	lock, err := filelock.Open(path, os.O_CREATE|os.O_RDWR, 0o644, filelock.Exclusive)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) { // the caller may only ask whether it can be deleted
		lock, err = filelock.Open(path, os.O_RDONLY, 0, filelock.Exclusive)
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, errRead
	}
	if err != nil {
		return nil, nil // the attempt to delete it reports what is wrong
	}
	return lock, nil
}
