package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// localFS is the local file system.
type localFS struct{}

func (localFS) uri(path string) string { return path }

// localError turns an error of package os into an *Error with its kind.
func localError(op, path string, err error) error {
	e := &Error{Op: op, URI: path, Err: err}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		e.Err = pe.Err // without the path, which is in URI
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Kind, e.Err = ErrNotFound, nil
		if !filepath.IsAbs(path) {
			if wd, err := os.Getwd(); err == nil {
				e.Hint = "the path is relative to " + wd
			}
		}
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Err = ErrPermission, nil
		e.Hint = fmt.Sprintf("user id %d may not access it", os.Getuid())
	default:
		e.Kind = ErrFailed
	}
	return e
}

func localEntry(path string, info fs.FileInfo) entry {
	return entry{path: path, size: info.Size(), dir: info.IsDir(), modTime: info.ModTime()}
}

func (localFS) stat(_ context.Context, path string) (entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return entry{}, localError("open", path, err)
	}
	return localEntry(path, info), nil
}

func (localFS) list(ctx context.Context, dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, localError("list", dir, err)
	}
	entries := make([]entry, 0, len(names))
	for _, n := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p := join(dir, n.Name())
		e, err := listed(dir, p, n.Type())
		if err == nil {
			entries = append(entries, e)
		} else if _, gone := os.Lstat(p); !errors.Is(gone, fs.ErrNotExist) { // else removed since
			entries = append(entries, entry{path: p, fault: err})
		}
	}
	return entries, nil
}

// listed is the file or directory p of dir. What cannot be read, such as a link that leads nowhere
// because a file system is not mounted, is an error.
func listed(dir, p string, mode fs.FileMode) (entry, error) {
	info, err := os.Stat(p) // follows links
	if mode&fs.ModeSymlink == 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return entry{}, localError("open", p, err)
		}
		return localEntry(p, info), nil
	}
	if err != nil {
		to, _ := os.Readlink(p) // it is for the message
		return entry{}, &Error{Op: "open", URI: p, Kind: ErrNotFound,
			Err: fmt.Errorf("it is a link to %s, which does not exist", to), Hint: "mount the file system that it leads to, or remove the link"}
	}
	if info.IsDir() && leadsBack(p, dir) {
		return entry{}, &Error{Op: "list", URI: p, Kind: ErrUnsupported,
			Err: errors.New("it is a link to a directory that it is in"), Hint: "remove the link, or name the files beside it instead of the directory"}
	}
	return localEntry(p, info), nil
}

// leadsBack says whether a link in dir leads to dir or to a directory around it,
// so that following it would never end.
func leadsBack(link, dir string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	return onlyFile(realPath(localFS{}, dir) + "/x").below(realPath(localFS{}, to))
}

// check opens every file, so that a missing permission is found now and not in the
// middle of the job.
func (localFS) check(ctx context.Context, files []entry) error {
	for _, e := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := os.Stat(e.path)
		if err != nil {
			return localError("open", e.path, err)
		}
		if !info.Mode().IsRegular() {
			return &Error{Op: "open", URI: e.path, Kind: ErrUnsupported,
				Err: fmt.Errorf("mode %s", info.Mode()), Hint: "only regular files and directories can be read"}
		}
		f, err := os.Open(e.path)
		if err != nil {
			return localError("open", e.path, err)
		}
		_ = f.Close() // nothing was written
	}
	return nil
}

// openLocal opens a file and makes sure that it is the one listed.
func openLocal(path string, f File) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, localError("open", path, err)
	}
	if err := unchangedLocal(file, f); err != nil {
		_ = file.Close() // err says more
		return nil, err
	}
	return file, nil
}

// unchangedLocal compares an open file with how it was listed.
func unchangedLocal(file *os.File, f File) error {
	info, err := file.Stat()
	if err != nil {
		return localError("open", f.URI, err)
	}
	return sameFile(f, localEntry(f.URI, info))
}

// localFile is a local file for reads at any offset.
type localFile struct {
	*os.File
	f File
}

// Close fails if the file has changed while it was open, since the bytes that were read
// may then be a mixture of old and new ones.
func (l localFile) Close() error {
	return errors.Join(unchangedLocal(l.File, l.f), l.File.Close())
}

// sameFile compares a file with how it was listed. If the modification time is unknown,
// the file may have grown, since the listed bytes are then assumed to be unchanged.
func sameFile(listed File, now entry) error {
	switch {
	case now.dir:
		return &Error{Op: "open", URI: listed.URI, Kind: ErrUnsupported, Err: errors.New("is a directory")}
	case now.size < listed.Size, now.size > listed.Size && !listed.ModTime.IsZero():
		return &Error{Op: "open", URI: listed.URI, Kind: ErrChanged,
			Err:  fmt.Errorf("it had %d bytes and now has %d", listed.Size, now.size),
			Hint: "do not write to a job's input while it runs"}
	case !listed.ModTime.IsZero() && !listed.ModTime.Equal(now.modTime):
		return &Error{Op: "open", URI: listed.URI, Kind: ErrChanged,
			Err: fmt.Errorf("it had been modified last at %s, and then again at %s",
				listed.ModTime.Format(timeFormat), now.modTime.Format(timeFormat)),
			Hint: "do not write to a job's input while it runs"}
	}
	return nil
}

const timeFormat = "2006-01-02 15:04:05.000"

func (localFS) openRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error) {
	file, err := openLocal(path, f)
	if err != nil {
		return nil, err
	}
	return &localReader{ctx: ctx, f: f, file: file, data: file, offset: offset}, nil
}

func (localFS) openAt(_ context.Context, path string, f File) (ReaderAtCloser, error) {
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
	f      File
	file   *os.File
	data   fileData // the file, perhaps past the page cache
	offset int64
	whole  bool // the end was reached, and the file was then still as listed
}

func (r *localReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	left := r.f.Size - r.offset
	if left == 0 {
		if !r.whole {
			if err := unchangedLocal(r.file, r.f); err != nil {
				return 0, err
			}
			r.whole = true
		}
		return 0, io.EOF
	}
	n, err := r.data.ReadAt(p, r.offset) // the file may have grown
	n = int(min(int64(n), left))
	r.offset += int64(n)
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		return 0, &Error{Op: "read", URI: r.f.URI, Kind: ErrChanged,
			Err: fmt.Errorf("it ends at byte %d of %d", r.offset, r.f.Size)}
	}
	return 0, localError("read", r.f.URI, err)
}

func (r *localReader) Close() error { return r.data.Close() }
