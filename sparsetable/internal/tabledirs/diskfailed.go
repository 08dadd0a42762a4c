package tabledirs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// DiskFailed reports whether an error is one that a disk causes that is broken or away, and not
// one that goes away when somebody frees space, or gives a permission.
func DiskFailed(err error) bool {
	return slices.ContainsFunc([]error{
		unix.EIO, unix.ENXIO, unix.ENODEV, unix.EREMOTEIO, unix.EBADMSG, unix.EUCLEAN, unix.ESTALE, unix.ENOTCONN,
	}, func(target error) bool { return errors.Is(err, target) })
}

// FailedDir is the one of the directories whose disk has caused an error; "": none has, or it
// is not known which.
func FailedDir(err error, dirs []string) string {
	var at *fs.PathError
	if !DiskFailed(err) || !errors.As(err, &at) {
		return ""
	}
	for _, dir := range dirs {
		if at.Path == dir || strings.HasPrefix(at.Path, filepath.Clean(dir)+"/") {
			return dir
		}
	}
	return ""
}
