package tabledirs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskFailed checks which errors count as those of a broken disk: those of the kernel's block
// devices, also direct reads of a bad sector, but not those of a user's mistake, a full disk, or a
// network.
func TestDiskFailed(t *testing.T) {
	wrapped := func(errno error) error {
		return fmt.Errorf("read: %w", &fs.PathError{Op: "read", Path: "/ssd/a", Err: errno})
	}
	for _, errno := range []unix.Errno{
		unix.EIO, unix.ENXIO, unix.ENODEV, unix.ESTALE, unix.EUCLEAN, // of file systems
		unix.ENODATA, unix.ETIMEDOUT, unix.ENOLINK, unix.EREMOTEIO, unix.EILSEQ, // blk_errors in the kernel
	} {
		if !DiskFailed(wrapped(errno)) {
			t.Errorf("%v is not an error of a disk", errno)
		}
	}
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EACCES, unix.ENOENT, unix.EMFILE, unix.ENOMEM, unix.EROFS} {
		if DiskFailed(wrapped(errno)) {
			t.Errorf("%v is an error of a disk", errno)
		}
	}
	if err := error(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", unix.ETIMEDOUT)}); DiskFailed(err) {
		t.Errorf("%v is an error of a disk", err)
	}
}

// TestFailedDir checks that if one directory lies in another, the disk of the inner one counts as
// failed if its file has failed.
func TestFailedDir(t *testing.T) {
	failed := func(path string, err error) string {
		return FailedDir(errors.Join(errors.New("open"), &fs.PathError{Op: "read", Path: path, Err: err}), []string{"/data", "/data/ssd2", "/other/"})
	}
	for path, want := range map[string]string{
		"/data/x.bucket": "/data", "/data/ssd2/x.bucket": "/data/ssd2", "/data/ssd2": "/data/ssd2", "/data/ssd22/x": "/data",
		"/other/x": "/other/", "/elsewhere/x": "",
	} {
		if got := failed(path, unix.EIO); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := failed("/data/x", unix.ENOSPC); got != "" {
		t.Errorf("a full disk: %q", got)
	}
}
