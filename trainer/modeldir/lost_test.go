package modeldir

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"testing"
)

// TestUnreadable: files with rows that cannot be read are named, unless their table is in a model
// directory, since a run could not go on without them.
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
