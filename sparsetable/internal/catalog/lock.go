package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/filelock"
)

// ErrInUse says that the catalog is already open, in another process or in this one.
var ErrInUse = errors.New("it is open elsewhere")

// Lock locks the file exclusively for a process that writes the catalog, and shared for processes
// that read it; Pebble's own lock would also exclude readers from each other. Only files of the
// operating system are locked in this way.
func (fs pebbleFS) Lock(name string) (io.Closer, error) {
	lock := func() (io.Closer, error) { return lockFile(name, fs.readOnly) }
	if vfs.Root(fs.FS) != vfs.Default {
		lock = func() (io.Closer, error) { return fs.FS.Lock(name) }
	}
	held, err := lock()
	if err != nil {
		return nil, err
	}
	return fs.log.hold(held), nil
}

// lockName is the file that Pebble locks while a database is open.
const lockName = "LOCK"

// LockReading locks the catalog in dir like a process that reads it.
func LockReading(dir string) (io.Closer, error) { return lockFile(filepath.Join(dir, lockName), true) }

// LockAlone locks the catalog in dir like a process that writes it.
func LockAlone(dir string) (io.Closer, error) { return lockFile(filepath.Join(dir, lockName), false) }

// lockFile locks a file, shared or exclusively, until the result is closed.
func lockFile(name string, shared bool) (io.Closer, error) {
	flags, kind := os.O_RDWR|os.O_CREATE, filelock.Exclusive
	if shared {
		flags, kind = os.O_RDONLY, filelock.Shared
	}
	f, err := filelock.Open(name, flags, 0o666, kind)
	switch {
	case err == nil:
		return f, nil
	case shared && errors.Is(err, fs.ErrNotExist):
		return io.NopCloser(nil), nil // nothing has written here since the file was lost
	case errors.Is(err, filelock.ErrHeld) && shared:
		return nil, fmt.Errorf("%w for writing: wait until it is closed", ErrInUse)
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("%w: wait until it is closed", ErrInUse)
	default:
		return nil, err
	}
}
