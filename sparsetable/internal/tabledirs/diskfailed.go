package tabledirs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"aibox/internal/atomicfile"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// diskErrors are the errors that file systems and the kernel's block devices return for a broken or
// missing disk. A direct read of a bad sector fails with ENODATA; one through the page cache fails
// with EIO.
var diskErrors = []error{
	unix.EIO, unix.ENXIO, unix.ENODEV, unix.EBADMSG, unix.EUCLEAN, unix.ESTALE, unix.ENOTCONN,
	unix.ENODATA, unix.ENOLINK, unix.EREMOTEIO, unix.EILSEQ,
}

// DiskFailed reports whether a broken or missing disk caused err, as opposed to something that a
// user can mend by freeing space or granting a permission.
func DiskFailed(err error) bool {
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(at, unix.ETIMEDOUT) { // without a path, it comes from a network
		return true
	}
	return slices.ContainsFunc(diskErrors, func(target error) bool { return errors.Is(err, target) })
}

// FailedDir is the directory whose disk has caused err, or "" if none has, or it is unknown which.
func FailedDir(err error, dirs []string) string {
	var at *fs.PathError
	if !DiskFailed(err) || !errors.As(err, &at) {
		return ""
	}
	if i := disk.Innermost(dirs, at.Path); i >= 0 {
		return dirs[i]
	}
	return ""
}

const unreadableSuffix = ".unreadable"

// SetAside takes away from a closed table a file that cannot be read although its disk can still be
// written. The table then lacks the file and can be recovered like one that has lost a file. The
// same happens to the tables in dirs that have links to the file. The file is kept under another
// name, so that the disk's bad blocks stay in use, as long as the table exists.
func SetAside(file string, dirs []string) error {
	bad, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is no longer needed
	}
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	for _, dir := range append([]string{filepath.Dir(file)}, dirs...) {
		link := filepath.Join(dir, name)
		if info, err := os.Lstat(link); err != nil || !os.SameFile(info, bad) {
			continue
		}
		if err := diskfault.At("rename", link); err != nil {
			return err
		}
		if err := os.Rename(link, link+unreadableSuffix); err != nil {
			return err
		}
		if err := atomicfile.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}
