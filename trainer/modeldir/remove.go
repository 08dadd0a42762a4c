package modeldir

import (
	"errors"
	"path/filepath"

	"aibox/internal/disk"
)

// Remove deletes a model directory: its models with their tables, also those elsewhere, what an
// interrupted run has left, and all reports. A directory that does not exist is no error. It fails
// with ErrLocked while a run writes the directory, and leaves what a process still reads.
func Remove(dir string) error {
	if disk.Gone(dir) {
		return nil
	}
	lock, err := makeAndLock(dir)
	if err != nil {
		return err
	}
	err = disk.Remove(filepath.Join(dir, ManifestName))
	if disk.Gone(filepath.Join(dir, ManifestName)) {
		err = errors.Join(removeGenerations(dir, nil)...)
	}
	if err := errors.Join(err, lock.Close()); err != nil {
		return err
	}
	return disk.RemoveAll(dir)
}
