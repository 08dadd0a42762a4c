package source

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// tempName is a hidden name beside path that no other writer uses.
func tempName(path string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	dir, name := filepath.Split(path)
	return dir + "." + name + "." + hex.EncodeToString(b[:]) + ".tmp"
}

// localWriter writes a temporary file beside its target; Close syncs it and
// renames it into place.
type localWriter struct {
	ctx  context.Context
	file *os.File
	path string
	temp string
	err  error // first failed write
	done bool
}

func (localFS) create(ctx context.Context, path string) (Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, localError("create", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &Error{Op: "create", URI: path, Kind: ErrUnsupported, Err: errors.New("is a directory")}
	}
	temp := tempName(path)
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, localError("create", path, err)
	}
	return &localWriter{ctx: ctx, file: file, path: path, temp: temp}, nil
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
		w.err = localError("write", w.path, err)
	}
	return n, w.err
}

// Close makes the file visible and durable. After a failed write it discards
// the file and returns that write's error.
func (w *localWriter) Close() error {
	if w.done {
		return nil
	}
	if w.err != nil {
		return errors.Join(w.err, w.Abort())
	}
	err := w.file.Sync()
	if err == nil {
		err = w.file.Close()
	}
	if err == nil {
		err = os.Rename(w.temp, w.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(w.path))
	}
	if err != nil {
		err = localError("write", w.path, err)
		return errors.Join(err, w.Abort())
	}
	w.done = true
	return nil
}

// Abort removes what was written.
func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	_ = w.file.Close() // it goes away
	if err := os.Remove(w.temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return localError("remove", w.temp, err)
	}
	return nil
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
