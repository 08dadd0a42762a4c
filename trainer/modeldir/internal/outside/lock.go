package outside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// lockName is the file in a directory of a table whose lock the run has that writes the table.
const lockName = "LOCK"

// lockRun takes the lock of a table's directory elsewhere, which says that its run is
// still running. The result is nil if another process holds it.
func lockRun(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	if err := diskfault.At("write", path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return lock, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		lock.Close()
		return nil, nil
	default:
		lock.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
}

// lockParent keeps other runs from making and freeing directories in dir until the
// result is closed, which must be soon.
func lockParent(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return f, nil
}

// isRunning reports whether a run has the lock of dir. Who asks need only be able to read.
func isRunning(dir string) (bool, error) {
	lock, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	default:
		return false, fmt.Errorf("locking %s: %w", dir, err)
	}
}
