package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/atomicfile"
	"aibox/internal/directfile"
	"aibox/reader/source/internal/fsys"
)

func (localFS) OpenOnce(ctx context.Context, path string, f fsys.File, offset int64) (io.ReadCloser, error) {
	file, err := openLocal(path, f)
	if err != nil {
		return nil, err
	}
	return &localReader{ctx: ctx, f: f, file: file, data: directfile.With(file, os.O_RDONLY), offset: offset}, nil
}

func (localFS) Put(ctx context.Context, path string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	if err := makeDurable(filepath.Dir(path)); err != nil {
		return err
	}
	w, err := createLocal(ctx, path, anyTemp, perm)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(data, 0, size), make([]byte, 1<<20))
	if err == nil && n < size {
		err = &Error{Op: "write", URI: path, Kind: ErrFailed, Err: io.ErrUnexpectedEOF}
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

func (localFS) Rename(_ context.Context, from, to string) error {
	if _, err := os.Lstat(from); err != nil { // then no directory is made either
		return fsys.OSError("rename", from, err)
	}
	if err := makeDurable(filepath.Dir(to)); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return fsys.OSError("rename", from, unwrapLink(err))
	}
	return errors.Join(atomicfile.SyncDir(filepath.Dir(to)), atomicfile.SyncDir(filepath.Dir(from)))
}

// unwrapLink is the error of a rename as one of a single path.
func unwrapLink(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

func (localFS) Remove(_ context.Context, path string) error {
	if err := os.Remove(path); err != nil {
		return fsys.OSError("remove", path, err)
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// makeDurable makes a directory durably if it is missing. It does not make the one that this is in:
// if that is gone, the file system may no longer be mounted, and what is written would be hidden
// below it.
func makeDurable(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fsys.OSError("create", dir, err)
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}
