// Package atomicfile writes files that appear under their names when they are
// whole and on the disk, or not at all: the bytes go into a temporary file beside
// the target, which is synced and then renamed.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// File is a file that is being written. Besides Write its steps are Prepare,
// Commit and Abort.
type File struct {
	*os.File
	path, temp string
	prepared   bool
	renamed    bool
}

// Create begins the file at path in a temporary file of that name, in the same
// directory; flag adds to O_WRONLY and O_CREATE.
func Create(path, temp string, flag int, mode os.FileMode) (*File, error) {
	if err := diskfault.At("create", path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|flag, mode)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path, temp: temp}, nil
}

// Write is that of io.Writer.
func (f *File) Write(p []byte) (int, error) {
	if err := diskfault.At("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// Prepare does what can fail for want of space: after it only a rename is left.
func (f *File) Prepare() error {
	if f.prepared {
		return nil
	}
	if err := diskfault.At("sync", f.path); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	f.prepared = true
	return f.File.Close()
}

// Commit makes the file visible and durable. If it fails, Renamed says whether the file is visible.
func (f *File) Commit() error {
	if err := f.Prepare(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(f.path)) // fails if the directory cannot be read, though it can be written
	if err != nil {
		return err
	}
	if err := f.rename(); err != nil {
		return errors.Join(err, dir.Close())
	}
	return syncAndClose(dir)
}

func (f *File) rename() error {
	if err := diskfault.At("rename", f.path); err != nil {
		return err
	}
	err := os.Rename(f.temp, f.path)
	f.renamed = err == nil
	return err
}

// Renamed reports whether the file is visible under its name.
func (f *File) Renamed() bool { return f.renamed }

// Abort removes what was written. It is not for files that are committed.
func (f *File) Abort() error {
	if !f.prepared {
		_ = f.File.Close() // it goes away
	}
	if err := os.Remove(f.temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// SyncDir makes what was created, renamed or removed in a directory durable, as far as its file
// system can: those of VirtualBox's shared folders and of some other emulations do not sync
// directories.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return syncAndClose(d)
}

// syncAndClose syncs a directory and closes it.
func syncAndClose(dir *os.File) error {
	err := diskfault.At("sync directory", dir.Name())
	if err == nil {
		err = dir.Sync()
	}
	if errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
