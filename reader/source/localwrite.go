package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"aibox/internal/atomicfile"
	"aibox/reader/source/internal/fsys"
)

// localWriter is a Writer of a local file.
type localWriter struct {
	ctx  context.Context
	file *atomicfile.File
	lock *os.File // on the temporary file; nil: the file system has no locks
	path string
	err  error // first failure
	done bool
	old  bool // the file existed before
}

func (localFS) Create(ctx context.Context, path string) (Writer, error) {
	return createLocal(ctx, path, fsys.OwnTemp, fsys.Perm)
}

// createLocal starts a local file, and removes leftovers of killed writers beside it whose names
// match.
func createLocal(ctx context.Context, path string, leftovers *regexp.Regexp, perm fs.FileMode) (Writer, error) {
	path, err := behindLinks(path)
	if err != nil {
		return nil, &Error{Op: "create", URI: path, Kind: ErrUnsupported, Err: err}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fsys.OSError("create", path, err)
	}
	info, _ := os.Stat(path) // nil: there is nothing yet
	if err := replaceable(info); err != nil {
		return nil, &Error{Op: "create", URI: path, Kind: ErrUnsupported, Err: err}
	}
	removeLocalLeftovers(filepath.Dir(path), leftovers)
	file, lock, err := createTemp(path, perm)
	if err != nil {
		return nil, fsys.OSError("create", path, err)
	}
	return &localWriter{ctx: ctx, file: file, lock: lock, path: path, old: info != nil}, nil
}

var errNoFile = errors.New("is a device, a pipe or a socket; name a file, which is written whole or not at all")

// behindLinks resolves path if it is a symbolic link, so that the rename does not replace the link,
// which may point to another disk. The link /dev/stdout does not point to a file with a name.
func behindLinks(path string) (string, error) {
	for range 40 { // as many as the kernel follows
		link, err := os.Readlink(path)
		if err != nil { // it is no link
			break
		}
		if strings.HasPrefix(link, "/proc/") {
			return path, errNoFile
		}
		if !filepath.IsAbs(link) {
			dir, _ := filepath.Split(path)
			link = dir + link
		}
		path = link
	}
	return path, nil
}

// replaceable returns an error if the file that info describes must not be replaced by a rename,
// which would turn a device such as /dev/null into a regular file.
func replaceable(info os.FileInfo) error {
	switch {
	case info != nil && info.IsDir():
		return errors.New("is a directory")
	case info != nil && !info.Mode().IsRegular():
		return errNoFile
	}
	return nil
}

func (w *localWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
		return 0, w.err
	}
	n, err := w.file.Write(p)
	if err != nil {
		w.err = fsys.OSError("write", w.path, err)
	}
	return n, w.err
}

// Prepare implements Writer.
func (w *localWriter) Prepare() error {
	if w.err == nil && !w.done {
		if err := w.file.Prepare(); err != nil {
			w.err = fsys.OSError("write", w.path, err)
		}
	}
	return w.err
}

// Close makes the file visible and durable. After a failure it discards the file, even if that is
// visible already, and returns that failure.
func (w *localWriter) Close() error {
	if w.done {
		return nil
	}
	if err := w.Prepare(); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.file.Commit(); err != nil {
		err = fsys.OSError("write", w.path, err)
		if w.file.Renamed() {
			err = errors.Join(err, w.Withdraw())
		}
		return errors.Join(err, w.Abort())
	}
	w.done = true
	w.unlock()
	return nil
}

func (w *localWriter) unlock() {
	if w.lock != nil {
		_ = w.lock.Close() // nothing was written through it
	}
}

// Withdraw implements Writer.
func (w *localWriter) Withdraw() error {
	if w.old {
		return fsys.Replaced(w.path)
	}
	if err := os.Remove(w.path); err != nil {
		return fsys.OSError("remove", w.path, err)
	}
	return nil
}

// Abort removes what was written.
func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	defer w.unlock()
	if err := w.file.Abort(); err != nil {
		return fsys.OSError("remove", w.path, err)
	}
	return nil
}
