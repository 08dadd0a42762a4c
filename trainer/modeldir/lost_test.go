package modeldir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestUnreadable checks that files with rows that cannot be read are named, unless their table is
// in a model directory, since a run could not continue without them.
func TestUnreadable(t *testing.T) {
	const name = "8b96e98de21f060e-000001-9473869dede2c357.bucket"
	read := func(path string, err error) error { return &fs.PathError{Op: "read", Path: path, Err: err} }
	e := &LostError{Err: errors.Join(
		read("/ssd/m-gen-000001-8b96e98d/"+name, syscall.EIO),
		read("/m/gen-000001/table/"+name, syscall.EIO),
		read("/ssd/m-gen-000001-8b96e98d/catalog", syscall.EIO),
		read("/nvme/m-gen-000001-8b96e98d/"+name, syscall.ENOSPC),
	)}
	if got, want := e.Unreadable(), []string{"/ssd/m-gen-000001-8b96e98d/" + name}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLostErrorNamesWhatIsLost checks that the message has the path of each lost directory exactly
// once, and no other paths.
func TestLostErrorNamesWhatIsLost(t *testing.T) {
	dirs := []string{"/ssd/m-1", "/nvme/m-1"}
	failed := &fs.PathError{Op: "read", Path: "/nvme/m-1/a.bucket", Err: syscall.EIO}
	if got, want := TableFailed(dirs, failed).Error(), "the table, which is in 2 directories, has lost /nvme/m-1 (read a.bucket: input/output error)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	gone := filepath.Join(t.TempDir(), "m-1")
	if got, want := checkDirs([]string{gone}).Error(), "the table has lost "+gone+" (open: no such file or directory)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
