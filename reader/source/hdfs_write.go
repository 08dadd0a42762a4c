package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// hdfsWriter collects a file on local disk ($TMPDIR) and uploads it when it is
// closed: to a hidden temporary name first, which is then renamed.
//
// The client library cannot recover from a DataNode that dies while it writes,
// nor keep a slow writer's connection alive: both lose the file. From a local
// copy the upload is simply done again.
type hdfsWriter struct {
	ctx   context.Context
	c     *cluster
	path  string
	spool *os.File
	err   error // first failed write
	done  bool
}

func (c *cluster) create(ctx context.Context, p string) (Writer, error) {
	p = cleanPath(p)
	// Report now what would be a pity to learn when the work is done: no such
	// cluster, no permission.
	err := c.do(ctx, "create", p, func(s *session) error {
		info, err := s.client.Stat(p)
		if err == nil && info.IsDir() {
			return &Error{Op: "create", URI: c.uri(p), Kind: ErrUnsupported, Err: errors.New("is a directory")}
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := s.client.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		probe := tempName(p)
		if err := s.client.CreateEmptyFile(probe); err != nil {
			return err
		}
		return s.client.Remove(probe)
	})
	if err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp("", "aibox-upload-")
	if err != nil {
		return nil, localError("create", os.TempDir(), err)
	}
	// Unnamed from here on: nothing is left behind however the process ends.
	if err := os.Remove(spool.Name()); err != nil {
		_ = spool.Close() // err says more
		return nil, localError("create", spool.Name(), err)
	}
	return &hdfsWriter{ctx: ctx, c: c, path: p, spool: spool}, nil
}

func (w *hdfsWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
		return 0, w.err
	}
	n, err := w.spool.Write(b)
	if err != nil {
		w.err = &Error{Op: "write", URI: w.c.uri(w.path), Kind: ErrUnavailable,
			Err:  fmt.Errorf("local copy: %w", err),
			Hint: "files for HDFS are collected in " + os.TempDir() + " first; point TMPDIR to a larger disk"}
	}
	return n, w.err
}

// Close uploads the file and renames it into place.
func (w *hdfsWriter) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	err := w.err
	if err == nil {
		err = w.c.do(w.ctx, "write", w.path, w.upload)
	}
	if e := w.spool.Close(); err == nil && e != nil {
		err = localError("write", w.spool.Name(), e)
	}
	return err
}

// Abort discards the file.
func (w *hdfsWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	return w.spool.Close()
}

// upload makes one attempt.
func (w *hdfsWriter) upload(s *session) error {
	temp := tempName(w.path)
	out, err := s.client.Create(temp)
	if err != nil {
		return err
	}
	if _, err = w.spool.Seek(0, io.SeekStart); err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, w.spool, make([]byte, 256<<10))
	}
	if err == nil {
		err = closeUpload(w.ctx, out)
	}
	if err == nil {
		err = s.client.Rename(temp, w.path)
	}
	if err != nil {
		// As well as it goes; a hidden file may stay.
		_ = s.client.Remove(temp)
	}
	return err
}

// closeUpload closes the file; while its last block has too few replicas, that
// must be asked again.
func closeUpload(ctx context.Context, out *hdfs.FileWriter) error {
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		err := out.Close()
		if !hdfs.IsErrReplicating(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
