package fsys

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Perm are the permissions of files, before the umask, where nothing else is said.
const Perm fs.FileMode = 0o644

// FileSystem is what local files and HDFS have in common. Paths are absolute
// or relative local paths, or absolute HDFS paths. Errors are *Error.
type FileSystem interface {
	URI(path string) string
	Stat(ctx context.Context, path string) (Entry, error)
	// List gives the entries of a directory in byte order of their names.
	List(ctx context.Context, dir string) ([]Entry, error)
	// Check reports the first of the files that could not be read.
	Check(ctx context.Context, files []Entry) error
	OpenRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error)
	// OpenOnce is OpenRange for bytes that are read once.
	OpenOnce(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error)
	OpenAt(ctx context.Context, path string, f File) (ReaderAtCloser, error)
	Create(ctx context.Context, path string) (Writer, error)
	// Put writes a file, which appears under its name, with these permissions, when it is whole and durable.
	Put(ctx context.Context, path string, data io.ReaderAt, size int64, perm fs.FileMode) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, path string) error
}

// Entry is a file or directory as a FileSystem sees it.
type Entry struct {
	Path    string
	Size    int64
	Dir     bool
	ModTime time.Time
	Fault   error // why it cannot be read, in a list of a directory; an error for who means it
}

// File is a file as it was listed.
type File struct {
	URI     string
	Size    int64     // bytes, as stored
	ModTime time.Time // zero: unknown, not checked
}

// ReaderAtCloser reads at any offset of one file. It is safe for concurrent
// use.
type ReaderAtCloser interface {
	io.ReaderAt
	io.Closer
}

// Writer writes one output file. Nothing is visible under the file's name
// before Close has returned nil; Abort discards what was written. Abort after
// Close does nothing.
type Writer interface {
	io.WriteCloser
	// Prepare does all that Close does, except that it does not give the file its name,
	// so that all of several files can be prepared before the first one appears.
	Prepare() error
	// Withdraw removes the file that Close has made visible. If it has replaced an
	// older one, which cannot be restored, it stays, and the error says so.
	Withdraw() error
	Abort() error
}

// Join is the path of name in the directory base.
func Join(base, name string) string {
	switch {
	case base == "":
		return name
	case strings.HasSuffix(base, "/"):
		return base + name
	}
	return base + "/" + name
}
