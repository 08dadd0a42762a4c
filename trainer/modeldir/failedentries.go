package modeldir

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aibox/internal/directfile"
	"aibox/internal/disk"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/outside"
)

// FailedEntries are those of dirs, entries of sparse_table.dirs, whose disks have failed or are not mounted, so that no table
// can be made there. What a permission, space or another path would mend is no such failure, nor is a
// file system that was made read-only and whose files can be read.
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
	_, err := os.Stat(dir)
	if err == nil {
		err = probe(dir)
	}
	for _, at := range pathErrors(err) { // what was to be cleaned up may have failed, too
		if sparsetable.DiskFailed(at) {
			return at
		}
	}
	if errors.Is(err, unix.EROFS) { // as ext4 becomes after an error, whether the disk still answers or not
		return tablesFailed(dir)
	}
	return nil
}

// probe fails if no file can be made and deleted in dir.
func probe(dir string) error {
	path := filepath.Join(dir, ".aibox-probe")
	if err := disk.WriteFile(path, nil); err != nil {
		return err
	}
	return os.Remove(path)
}

// tablesFailed fails if a table in an entry of sparse_table.dirs cannot be read.
func tablesFailed(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := outside.ModelName(e.Name()); !ok {
			continue
		}
		if err := checkDir(filepath.Join(dir, e.Name())); sparsetable.DiskFailed(err) {
			return err
		}
	}
	return nil
}

// readFromDisk reads the first block of a file, and not what the page cache has of it, where the file system allows that.
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
