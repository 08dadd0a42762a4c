package outside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/diskfault"
	"aibox/internal/filelock"
	"aibox/trainer/modeldir/internal/faults"
)

// lockName is the file in a table's directory that is locked by the run that writes the table.
const lockName = "LOCK"

// lockRun takes the lock of a table's directory elsewhere, which says that its run is alive. The
// error is faults.ErrLocked if another process holds it.
func lockRun(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	if err := diskfault.At("write", path); err != nil {
		return nil, err
	}
	lock, err := filelock.Open(path, os.O_CREATE|os.O_RDWR, 0o644, filelock.Exclusive)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%s: %w", dir, faults.ErrLocked)
	}
	return lock, err
}

// lockParent keeps other runs from making and freeing directories in dir until the result is
// closed, which must be soon.
func lockParent(dir string) (*os.File, error) {
	return filelock.Wait(dir, os.O_RDONLY, 0)
}

// isRunning reports whether a run has the lock of dir. The caller need only be able to read dir.
func isRunning(dir string) (bool, error) {
	lock, err := filelock.Open(filepath.Join(dir, lockName), os.O_RDONLY, 0, filelock.Shared)
	switch {
	case err == nil:
		return false, lock.Close()
	case errors.Is(err, filelock.ErrHeld):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
