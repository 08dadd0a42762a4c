package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exists reports whether there is a file or directory at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Gone reports whether nothing exists at path. It is asked because deleting a path that
// does not exist fails if the file system is read-only, or if path leads through a file.
func Gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// Deleted reports whether an open file has no name any more. Some user-space file systems report
// this for every file, so the path at which it was opened is checked too.
func Deleted(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink > 0 {
		return false
	}
	at, err := os.Stat(f.Name())
	return err != nil || !os.SameFile(info, at)
}

// Nearest returns path, or the nearest directory above it that exists.
func Nearest(path string) string {
	for Gone(path) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}

// RealDir is the absolute path of a directory without symbolic links.
func RealDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// SameDir reports whether two paths lead to the same directory, possibly through links.
func SameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// Innermost returns the index of the directory that contains path or equals it: that of the longest
// one if they are nested, and -1 if there is none.
func Innermost(dirs []string, path string) int {
	in := -1
	for i, dir := range dirs {
		if (path == dir || strings.HasPrefix(path, filepath.Clean(dir)+"/")) && (in < 0 || len(dir) > len(dirs[in])) {
			in = i
		}
	}
	return in
}

// Usage returns how many bytes the files in dir take, and when the last one was written.
func Usage(dir string) (bytes int64, last time.Time, err error) {
	err = filepath.WalkDir(dir+"/", func(_ string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !e.IsDir() {
			bytes += info.Size()
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return bytes, last, err
}
