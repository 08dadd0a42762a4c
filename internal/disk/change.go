package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/atomicfile"
	"aibox/internal/diskfault"
)

// BeforeChange is called before each change of files of this package. Tests set it, to end the process there.
var BeforeChange = func(operation, path string) {}

// Write replaces the contents of path by what write produces: after a failure or a
// crash, path has either all of it or is unchanged.
func Write(path string, write func(io.Writer) error) error {
	BeforeChange("create", path+".tmp")
	f, err := atomicfile.Create(path, path+".tmp", os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		BeforeChange("rename", path)
		err = f.Commit()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}

// WriteFile replaces path by data, atomically and durably.
func WriteFile(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// SyncDir makes what was created, renamed or removed in a directory durable, or the contents of a file.
func SyncDir(dir string) error { return atomicfile.SyncDir(dir) }

// Remove is os.Remove.
func Remove(path string) error {
	BeforeChange("remove", path)
	if err := diskfault.At("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

// RemoveAll is os.RemoveAll.
func RemoveAll(path string) error {
	BeforeChange("remove", path)
	if err := diskfault.At("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// ReadDir is os.ReadDir.
func ReadDir(dir string) ([]os.DirEntry, error) {
	if err := diskfault.At("list", dir); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
}

// ReadFile is os.ReadFile.
func ReadFile(path string) ([]byte, error) {
	if err := diskfault.At("read", path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Rename is os.Rename.
func Rename(from, to string) error {
	BeforeChange("rename", to)
	return os.Rename(from, to)
}

// SyncTree makes all files and directories below dir durable.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		if err := SyncDir(path); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		return nil
	})
}
