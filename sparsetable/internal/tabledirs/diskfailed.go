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

// diskErrors are what file systems, and the kernel's block devices, say of a disk that is broken or
// away. A direct read of a bad sector fails with ENODATA, where one through the page cache says EIO.
var diskErrors = []error{
	unix.EIO, unix.ENXIO, unix.ENODEV, unix.EBADMSG, unix.EUCLEAN, unix.ESTALE, unix.ENOTCONN,
	unix.ENODATA, unix.ENOLINK, unix.EREMOTEIO, unix.EILSEQ,
}

// DiskFailed reports whether an error is one that a disk causes that is broken or away, and not
// one that goes away when somebody frees space, or gives a permission.
func DiskFailed(err error) bool {
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(at, unix.ETIMEDOUT) { // without a path it is one of a network
		return true
	}
	return slices.ContainsFunc(diskErrors, func(target error) bool { return errors.Is(err, target) })
}

// FailedDir is the one of the directories whose disk has caused an error; "": none has, or it
// is not known which.
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

// SetAside takes a file away from a table that is closed, because the file cannot be read though its
// disk still can be written: the table lacks it then, and can be recovered as one that has lost a
// file. So do the tables in dirs that have links to the same file. The file is kept under another name,
// with the bad blocks of the disk, as long as the table is.
func SetAside(file string, dirs []string) error {
	bad, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody needs it any more
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
