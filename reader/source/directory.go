package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"aibox/reader/source/internal/fsys"
)

// Directory is a directory, on a local file system or in HDFS, in which the program keeps its own
// files. Names are relative to it and use slashes. A missing directory in it is created; on a local
// file system, the Directory itself must exist then. It is safe for concurrent use.
type Directory struct {
	URI  string
	fs   fsys.FileSystem
	path string
}

// Entry is a file or a directory in a Directory.
type Entry struct {
	Name    string // within the directory that was listed
	Size    int64
	ModTime time.Time
	IsDir   bool
}

// Directory returns the directory that a URI names. It need not exist.
func (s *Sources) Directory(uri string) (*Directory, error) {
	fs, path, err := s.resolve(uri)
	if err != nil {
		return nil, err
	}
	return &Directory{URI: strings.TrimRight(uri, "/"), fs: fs, path: path}, nil
}

// LocalPath is the path of the directory in the file systems of this machine, some of which may be
// mounted from elsewhere; "": it is in HDFS.
func (d *Directory) LocalPath() string {
	if _, ok := d.fs.(localFS); ok {
		return d.path
	}
	return ""
}

func (d *Directory) at(name string) string { return path.Join(d.path, name) }

// Exists reports whether there is a directory, or a file of its name.
func (d *Directory) Exists(ctx context.Context) (bool, error) {
	_, err := d.fs.Stat(ctx, d.path)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// List returns what is in the directory called name, hidden names included, in byte order.
// A directory that does not exist is empty.
func (d *Directory) List(ctx context.Context, name string) ([]Entry, error) {
	found, err := d.fs.List(ctx, d.at(name))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, e := range found {
		switch {
		case e.Fault == nil:
			entries = append(entries, Entry{Name: path.Base(e.Path), Size: e.Size, ModTime: e.ModTime, IsDir: e.Dir})
		case !errors.Is(e.Fault, ErrNotFound): // a link that leads nowhere is no file
			return nil, e.Fault
		}
	}
	return entries, nil
}

// Open opens a file of the given size at an offset. If it has fewer bytes, reading fails. Reads of
// a local file into memory from directfile.Memory bypass the page cache if the file system supports
// it.
func (d *Directory) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	p := d.at(name)
	return d.fs.OpenOnce(ctx, p, fsys.File{URI: d.fs.URI(p), Size: size}, offset)
}

// Put writes a file of size bytes, which it reads from data, some of them several times if a
// DataNode fails. The file appears under its name once it is complete and durable, replacing any
// file of that name. perm are its permissions, before the umask.
func (d *Directory) Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	return d.fs.Put(ctx, d.at(name), data, size, perm)
}

// Rename renames a file atomically, replacing any file of that name. The error is ErrNotFound if
// there is no such file; this includes the case that an earlier attempt of the same call renamed it
// and the reply was lost.
func (d *Directory) Rename(ctx context.Context, from, to string) error {
	return d.fs.Rename(ctx, d.at(from), d.at(to))
}

// Remove removes a file durably. If there is none, it does nothing.
func (d *Directory) Remove(ctx context.Context, name string) error {
	if err := d.fs.Remove(ctx, d.at(name)); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

func (d *Directory) String() string { return fmt.Sprint(d.URI) }
