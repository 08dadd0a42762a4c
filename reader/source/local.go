package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/reader/source/internal/fsys"
)

// localFS is the local file system.
type localFS struct{}

func (localFS) URI(path string) string { return path }

func localEntry(path string, info fs.FileInfo) fsys.Entry {
	return fsys.Entry{Path: path, Size: info.Size(), Dir: info.IsDir(), ModTime: info.ModTime()}
}

func (localFS) Stat(_ context.Context, path string) (fsys.Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fsys.Entry{}, fsys.OSError("open", path, err)
	}
	return localEntry(path, info), nil
}

func (localFS) List(ctx context.Context, dir string) ([]fsys.Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fsys.OSError("list", dir, err)
	}
	entries := make([]fsys.Entry, 0, len(names))
	for _, n := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := fsys.Join(dir, n.Name())
		e, err := listed(dir, p, n.Type())
		if err == nil {
			entries = append(entries, e)
		} else if _, gone := os.Lstat(p); !errors.Is(gone, fs.ErrNotExist) { // else removed since
			entries = append(entries, fsys.Entry{Path: p, Fault: err})
		}
	}
	return entries, nil
}

// listed is the file or directory p of dir. What cannot be read, such as a link that leads nowhere
// because a file system is not mounted, is an error.
func listed(dir, p string, mode fs.FileMode) (fsys.Entry, error) {
	info, err := os.Stat(p) // follows links
	if mode&fs.ModeSymlink == 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return fsys.Entry{}, fsys.OSError("open", p, err)
		}
		return localEntry(p, info), nil
	}
	if err != nil {
		to, _ := os.Readlink(p) // it is for the message
		return fsys.Entry{}, &Error{Op: "open", URI: p, Kind: ErrNotFound,
			Err: fmt.Errorf("it is a link to %s, which does not exist", to), Hint: "mount the file system that it leads to, or remove the link"}
	}
	if info.IsDir() && linksToParent(p, dir) {
		return fsys.Entry{}, &Error{Op: "list", URI: p, Kind: ErrUnsupported,
			Err: errors.New("it is a link to a directory that it is in"), Hint: "remove the link, or name the files beside it instead of the directory"}
	}
	return localEntry(p, info), nil
}

// linksToParent says whether a link in dir leads to dir or to a directory around it,
// so that following it would never end.
func linksToParent(link, dir string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	return onlyFile(realPath(localFS{}, dir) + "/x").below(realPath(localFS{}, to))
}

// Check opens every file, so that a missing permission is found now and not in the
// middle of the job.
func (localFS) Check(ctx context.Context, files []fsys.Entry) error {
	for _, e := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := os.Stat(e.Path)
		if err != nil {
			return fsys.OSError("open", e.Path, err)
		}
		if !info.Mode().IsRegular() {
			return &Error{Op: "open", URI: e.Path, Kind: ErrUnsupported,
				Err: fmt.Errorf("mode %s", info.Mode()), Hint: "only regular files and directories can be read"}
		}
		f, err := os.Open(e.Path)
		if err != nil {
			return fsys.OSError("open", e.Path, err)
		}
		_ = f.Close() // nothing was written
	}
	return nil
}

// openLocal opens a file and makes sure that it is the one listed.
func openLocal(path string, f fsys.File) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fsys.OSError("open", path, err)
	}
	if err := unchangedLocal(file, f); err != nil {
		_ = file.Close() // err says more
		return nil, err
	}
	return file, nil
}

// unchangedLocal compares an open file with how it was listed.
func unchangedLocal(file *os.File, f fsys.File) error {
	info, err := file.Stat()
	if err != nil {
		return fsys.OSError("open", f.URI, err)
	}
	return fsys.SameFile(f, localEntry(f.URI, info))
}

// localFile is a local file for reads at any offset.
type localFile struct {
	*os.File
	f fsys.File
}

// ReadAt implements io.ReaderAt. If the file ends before its listed size, the error is not io.EOF,
// which callers could take for the end of the data.
func (l localFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := l.File.ReadAt(p, offset)
	if end := offset + int64(n); errors.Is(err, io.EOF) && end < l.f.Size {
		return n, endsEarly(l.f, end)
	}
	return n, err
}

// endsEarly is the error about a file that is shorter than it was when listed, and has no byte at
// the offset.
func endsEarly(f fsys.File, offset int64) error {
	return &Error{Op: "read", URI: f.URI, Kind: ErrChanged, Err: fmt.Errorf("it had %d bytes and now ends before byte %d", f.Size, offset+1),
		Hint: "do not write to a job's input while it runs"}
}

// Close fails if the file changed while it was open, because the bytes that were read may be a
// mixture of old and new ones.
func (l localFile) Close() error {
	return errors.Join(unchangedLocal(l.File, l.f), l.File.Close())
}

func (localFS) OpenRange(ctx context.Context, path string, f fsys.File, offset int64) (io.ReadCloser, error) {
	file, err := openLocal(path, f)
	if err != nil {
		return nil, err
	}
	return &localReader{ctx: ctx, f: f, file: file, data: file, offset: offset}, nil
}

func (localFS) OpenAt(_ context.Context, path string, f fsys.File) (fsys.ReaderAtCloser, error) {
	file, err := openLocal(path, f)
	if err != nil {
		return nil, err
	}
	return localFile{file, f}, nil
}

// fileData is the bytes of a file.
type fileData interface {
	io.ReaderAt
	io.Closer
}

// localReader reads [offset, f.Size) of a local file.
type localReader struct {
	ctx    context.Context
	f      fsys.File
	file   *os.File
	data   fileData // the file, perhaps past the page cache
	offset int64
	end    error // io.EOF, or how the file has changed; nil: Read has not reached its end
}

func (r *localReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	left := r.f.Size - r.offset
	if left == 0 {
		if r.end == nil {
			r.end = cmp.Or(unchangedLocal(r.file, r.f), io.EOF)
		}
		return 0, r.end
	}
	n, err := r.data.ReadAt(p, r.offset) // the file may have grown
	n = int(min(int64(n), left))
	r.offset += int64(n)
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		r.end = endsEarly(r.f, r.offset)
		return 0, r.end
	}
	return 0, fsys.OSError("read", r.f.URI, err)
}

// Close fails if the file changed before Read reached its end, because the bytes that were read may
// be a mixture of old and new ones.
func (r *localReader) Close() error {
	if r.end != nil {
		return r.data.Close()
	}
	return errors.Join(unchangedLocal(r.file, r.f), r.data.Close())
}
