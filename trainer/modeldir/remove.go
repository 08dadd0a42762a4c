package modeldir

import (
	"errors"
	"os"
	"path/filepath"
)

// Remove deletes a model directory: its models with their tables, also those elsewhere, what an
// interrupted run has left, and all reports. A directory that does not exist is no error. It fails
// with ErrLocked while a run writes the directory, and leaves what a process still reads.
func Remove(dir string) error {
	if gone(dir) {
		return nil
	}
	lock, err := makeAndLock(dir)
	if err != nil {
		return err
	}
	beforeChange("remove", filepath.Join(dir, ManifestName))
	err = os.Remove(filepath.Join(dir, ManifestName))
	if gone(filepath.Join(dir, ManifestName)) {
		err = errors.Join(removeGenerations(dir, nil)...)
	}
	if err := errors.Join(err, lock.Close()); err != nil {
		return err
	}
	return removeAll(dir)
}
