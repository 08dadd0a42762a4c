package modeldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/disk"
	"aibox/sparsetable"
)

// dirLock is the lock of a model directory, which may have been created to take the lock.
type dirLock struct {
	dir  string
	file *os.File
	made bool // the directory did not exist before
}

// makeAndLock makes a model directory, unless it exists, and takes its lock.
func makeAndLock(dir string) (*dirLock, error) {
	for {
		if err := disk.CheckMounted(dir); err != nil {
			return nil, fmt.Errorf("model directory %s: %w", dir, err)
		}
		_, err := os.Stat(dir)
		l := &dirLock{dir: dir, made: errors.Is(err, fs.ErrNotExist)}
		if to, e := os.Readlink(dir); l.made && e == nil {
			return nil, fmt.Errorf("model directory: %s is a symbolic link to %s, which does not exist: is its file system mounted? %w", dir, to, err)
		}
		if err := (sparsetable.OSFS{}).MkdirAll(dir); err != nil {
			return nil, fmt.Errorf("model directory: %w", err)
		}
		l.file, err = lockDir(dir)
		if err == nil && l.current() {
			return l, nil
		}
		// Another run that has created nothing else may have removed the directory meanwhile.
		if err == nil {
			err = l.file.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// current reports whether the locked file is still the one in the directory.
func (l *dirLock) current() bool {
	have, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.path())
	return err == nil && os.SameFile(have, there)
}

func (l *dirLock) path() string { return filepath.Join(l.dir, lockName) }

// Close releases the lock. It removes a directory that was created for the lock and holds nothing
// else.
func (l *dirLock) Close() error {
	entries, err := os.ReadDir(l.dir)
	if l.made && err == nil && len(entries) == 1 && entries[0].Name() == lockName {
		err = os.Remove(l.path())
		_ = os.Remove(l.dir) // it stays if another run has begun in it since
	}
	return errors.Join(err, l.file.Close())
}
