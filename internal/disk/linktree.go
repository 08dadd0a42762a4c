package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkTree replaces to by the file or directory from, with hard links to its files, or copies if
// the file system cannot link them. If to is such a tree already, nothing happens.
func LinkTree(from, to string) error {
	if SameTree(from, to) {
		return nil
	}
	temporary := to + ".tmp"
	if err := RemoveAll(temporary); err != nil {
		return err
	}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := temporary
		if below, err := filepath.Rel(from, path); err != nil {
			return err
		} else if below != "." {
			at = filepath.Join(temporary, below)
		}
		BeforeChange("create", at)
		if e.IsDir() {
			return os.Mkdir(at, 0o755)
		}
		if os.Link(path, at) == nil {
			return nil
		}
		return copyFile(path, at)
	})
	if err == nil {
		err = SyncTree(temporary)
	}
	if info, e := os.Stat(temporary); err == nil && e == nil && info.IsDir() {
		err = RemoveAll(to) // a rename does not replace a directory that is not empty
	}
	if err == nil {
		err = Rename(temporary, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	return nil
}

// SameTree reports whether what LinkTree makes of from is at to.
func SameTree(from, to string) bool {
	a, err := os.Stat(from)
	if err != nil {
		return false
	}
	b, err := os.Stat(to)
	if err != nil || a.IsDir() != b.IsDir() {
		return false
	}
	if !a.IsDir() {
		return os.SameFile(a, b) || a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	}
	theirs, err := os.ReadDir(from)
	if err != nil {
		return false
	}
	ours, err := os.ReadDir(to)
	if err != nil || len(ours) != len(theirs) {
		return false
	}
	for i, e := range theirs {
		if ours[i].Name() != e.Name() || !SameTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())) {
			return false
		}
	}
	return true
}

// copyFile copies a file with its mode and its time of modification.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
