package memory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aibox/internal/disk"
	"aibox/internal/filelock"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/contract"
)

// FS is the part of a file system that a table of KindMemory uses. Tests inject
// faults and crashes through it; OSFS is the real one.
type FS interface {
	// Create makes a file for writing, empty even if it existed.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Rename atomically renames oldName to newName, replacing an existing newName.
	Rename(oldName, newName string) error
	Remove(name string) error
	// List returns the names of the files in dir, in any order.
	List(dir string) ([]string, error)
	// MkdirAll makes a directory and its missing parents, durably.
	MkdirAll(dir string) error
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
}

// File is an open file of an FS.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error
	Size() (int64, error)
}

// OSFS is the operating system's file system.
type OSFS struct{}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Create implements FS.
func (OSFS) Create(name string) (File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Open implements FS.
func (OSFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements FS.
func (OSFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements FS.
func (OSFS) Remove(name string) error { return os.Remove(name) }

// List implements FS.
func (OSFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MkdirAll implements FS.
func (OSFS) MkdirAll(dir string) error { return blockio.MakeDir(dir) }

// Lock locks a directory for a table that writes there, until the result is closed. It returns
// ErrInUse if another table has the lock, in another process or in this one.
func (OSFS) Lock(dir string) (io.Closer, error) {
	f, err := filelock.Open(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o666, filelock.Exclusive)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: another process writes the table in %s: wait until it ends", contract.ErrInUse, dir)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// lockName is the file that is locked while a table in memory is open for writing.
const lockName = "LOCK"

// SyncDir implements FS.
func (OSFS) SyncDir(dir string) error { return disk.SyncDir(dir) }
