package modeldir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/directfile"
	"aibox/internal/disk"
	"aibox/sparsetable"
)

// FailedEntries returns the entries of sparse_table.dirs, given by dirs, whose disks have failed,
// were made read-only after an error, or are not mounted, so that no table can be made there. A
// fault that a permission, free space or another path would cure does not count.
func FailedEntries(dirs []string) (failed []LostDir) {
	for _, dir := range dirs {
		if err := entryFailed(dir); err != nil {
			failed = append(failed, lostDir(dir, err))
		}
	}
	return failed
}

func entryFailed(dir string) error {
	if err := disk.CheckMounted(dir); err != nil {
		return err
	}
	// A directory that does not exist yet, for example because its path has a date in it, is as
	// good as the nearest existing one.
	nearest := disk.Nearest(dir)
	for _, at := range pathErrors(probe(nearest)) { // cleaning up may have failed, too
		if diskFailed(at) && nearest != dir { // it may be a misspelled path on the disk of the system
			return fmt.Errorf("it does not exist, and %s, where it would be created, cannot be written: %w; is its path right?", nearest, at)
		}
		if diskFailed(at) {
			return at
		}
	}
	return nil
}

// probe fails if no file can be created and deleted in dir. Jobs that share dir may do so at the
// same time: then one finds its file already deleted by the other, which shows the same.
func probe(dir string) error {
	path := filepath.Join(dir, ".aibox-probe")
	err := disk.WriteFile(path, nil)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) && disk.Exists(dir) {
		return nil
	}
	return err
}

// readFromDisk reads the first block of a file, bypassing the page cache if the file system allows
// that.
func readFromDisk(path string) error {
	f, err := directfile.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.ReadAt(directfile.Memory(4096), 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// CheckPlaces fails if a table's directory could not be made in one of dirs.
func CheckPlaces(dirs []string) error {
	for _, dir := range dirs {
		if err := disk.CheckMounted(dir); err != nil {
			return err
		}
		if err := (sparsetable.OSFS{}).MkdirAll(dir); err != nil {
			return err
		}
		if err := probe(dir); err != nil {
			return err
		}
	}
	return nil
}
