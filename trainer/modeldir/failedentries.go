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

// FailedEntries are those of dirs, entries of sparse_table.dirs, whose disks have failed, or were
// made read-only after an error, or are not mounted, so that no table can be made there. What a
// permission, space or another path would mend is no such failure.
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
	// A directory that is yet to be made, as where its path has a date in it, is as good as the one
	// that it will be in.
	nearest := disk.Nearest(dir)
	for _, at := range pathErrors(probe(nearest)) { // what was to be cleaned up may have failed, too
		if diskFailed(at) && nearest != dir { // it may be a misspelled path on the disk of the system
			return fmt.Errorf("it does not exist, and %s cannot be written, where it would be made: %w; is its path right?", nearest, at)
		}
		if diskFailed(at) {
			return at
		}
	}
	return nil
}

// probe fails if no file can be made and deleted in dir. Jobs that share dir may do so at the same
// time: then one finds that the other has taken its file away, which shows as much.
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

// readFromDisk reads the first block of a file, and not what the page cache has of it, where the
// file system allows that.
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

// CheckPlaces fails if no directory of a table could be made in one of dirs.
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
