package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"aibox/reader/source/internal/fsys"
)

// writer collects a file on the local disk ($TMPDIR). Close uploads it under a hidden temporary
// name and then renames it.
//
// Because of the local copy, a block can be written again when a DataNode dies, and the whole file
// when the NameNode does.
type writer struct {
	ctx   context.Context
	c     *Cluster
	path  string
	spool *os.File    // nil: the caller of Put has the data
	data  io.ReaderAt // what is uploaded
	size  int64
	perm  fs.FileMode
	temp  string // the path of the uploaded file; "": there is none yet
	err   error  // first failure
	done  bool
	// renames counts the attempts to give the file its name.
	renames int
	left    []string // temporary files of failed attempts that may still exist
	old     bool     // the file existed before
}

func (c *Cluster) Create(ctx context.Context, p string) (fsys.Writer, error) {
	w, err := c.newWriter(ctx, p)
	if err != nil {
		return nil, err
	}
	if w.spool, err = os.CreateTemp("", "aibox-upload-"); err != nil {
		return nil, fsys.OSError("create", os.TempDir(), err)
	}
	// The open file has no name from here on, so that nothing is left behind, however
	// the process ends.
	if err := os.Remove(w.spool.Name()); err != nil {
		_ = w.spool.Close() // err says more
		return nil, fsys.OSError("create", w.spool.Name(), err)
	}
	w.data, w.perm = w.spool, fsys.Perm
	return w, nil
}

// Put writes size bytes of data, which are read several times if DataNodes fail.
func (c *Cluster) Put(ctx context.Context, p string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	w, err := c.newWriter(ctx, p)
	if err != nil {
		return err
	}
	w.data, w.size, w.perm = data, size, perm
	return w.Close()
}

// newWriter returns a writer that has nothing to upload yet.
func (c *Cluster) newWriter(ctx context.Context, p string) (*writer, error) {
	p = CleanPath(p)
	// A wrong cluster, a missing permission or a directory to which files cannot be
	// written should fail now, before the work is done.
	old := false
	var probes []string // probe files that may still exist
	err := c.do(ctx, "create", p, func(s *session) error {
		info, err := s.client.Stat(p)
		old = err == nil
		if err == nil && info.IsDir() {
			return &fsys.Error{Op: "create", URI: c.URI(p), Kind: fsys.ErrUnsupported, Err: errors.New("is a directory")}
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := s.client.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		probe := fsys.TempName(p)
		probes = append(probes, probe)
		if _, err := s.upload(probe, nil, 0, fsys.Perm); err != nil {
			return err
		}
		made, err := s.client.Stat(probe) // its modification time is now, by the clock of the NameNode
		if err != nil {
			return err
		}
		if err := s.client.Remove(probe); err != nil {
			return err
		}
		probes = probes[:len(probes)-1]
		s.removeLeftovers(path.Dir(p), made.ModTime())
		return nil
	})
	// The NameNode may have failed over between a probe's creation and its removal.
	left := c.discard(ctx, probes)
	if err != nil {
		return nil, err
	}
	return &writer{ctx: ctx, c: c, path: p, old: old, left: left}, nil
}

func (w *writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
		return 0, w.err
	}
	n, err := w.spool.Write(b)
	w.size += int64(n)
	if err != nil {
		w.err = &fsys.Error{Op: "write", URI: w.c.URI(w.path), Kind: fsys.ErrUnavailable,
			Err:  fmt.Errorf("write the local copy: %w", err),
			Hint: "files for HDFS are collected in " + os.TempDir() + " first; point TMPDIR to a larger disk"}
	}
	return n, w.err
}

// Prepare uploads the file.
func (w *writer) Prepare() error {
	if w.err == nil && w.temp == "" && !w.done {
		r := retrier{c: w.c, op: "write", path: w.path}
		renewals := 0
		w.err = w.c.repeat(w.ctx, &r, func(s *session) error {
			written, err := w.upload(s)
			if err != nil && written > 0 && renewals < uploadRenewals {
				r.succeeded()
				renewals++
			}
			return err
		})
	}
	return w.err
}

// Close uploads the file, if Prepare has not, and renames it into place.
func (w *writer) Close() error {
	if w.done {
		return nil
	}
	err := w.publish()
	if errors.Is(err, fsys.ErrNotFound) { // another upload has removed it as a leftover, perhaps because many files were prepared first
		w.temp, w.renames = "", 0
		err = w.publish()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	w.done = true
	w.left = w.c.discard(w.ctx, w.left)
	if w.spool == nil {
		return nil
	}
	if err := w.spool.Close(); err != nil {
		return fsys.OSError("write", w.spool.Name(), err)
	}
	return nil
}

// publish uploads the file, unless that is done, and gives it its name.
func (w *writer) publish() error {
	if err := w.Prepare(); err != nil {
		return err
	}
	return w.c.do(w.ctx, "write", w.path, w.rename)
}

// Withdraw implements Writer.
func (w *writer) Withdraw() error {
	if w.old {
		return fsys.Replaced(w.c.URI(w.path))
	}
	return w.c.do(w.ctx, "remove", w.path, func(s *session) error { return s.client.Remove(w.path) })
}

// Abort discards the file.
func (w *writer) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.temp != "" {
		w.left = append(w.left, w.temp)
	}
	w.left = w.c.discard(w.ctx, w.left)
	if w.spool == nil {
		return nil
	}
	return w.spool.Close()
}

// rename gives the uploaded file its name. When it is repeated, the first attempt may
// have succeeded although its answer was lost.
func (w *writer) rename(s *session) error {
	err := s.client.Rename(w.temp, w.path)
	if w.renames++; w.renames > 1 && errors.Is(err, os.ErrNotExist) {
		if info, statErr := s.client.Stat(w.path); statErr == nil && !info.IsDir() && info.Size() == w.size {
			return nil
		}
	}
	return err
}

// upload makes one attempt, as session.upload does.
func (w *writer) upload(s *session) (written int64, err error) {
	temp := fsys.TempName(w.path)
	written, err = s.upload(temp, w.data, w.size, w.perm)
	if err == nil {
		w.temp = temp
	} else {
		w.left = append(w.left, temp)
	}
	w.left = w.c.discard(w.ctx, w.left)
	return written, err
}

// discard removes the temporary files of uploads that failed, and returns those
// that it could not remove. The session of an upload may have ended with its context,
// so discard uses a context of its own, which lasts as long as one operation may take.
func (c *Cluster) discard(ctx context.Context, temps []string) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	for _, temp := range temps {
		r := retrier{c: c, op: "remove", path: temp}
		remove := func(s *session) error { return s.client.Remove(temp) }
		err := c.once(ctx, &r, remove)
		if err != nil && r.freeRetry(err) {
			// The connection was an old one, or its NameNode is no longer active.
			r.attempts++
			err = c.once(ctx, &r, remove)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			left = append(left, temp)
			c.log.Warn("HDFS: a temporary file of a failed upload is still there; a later upload to its directory removes it",
				"uri", c.URI(temp), "error", err)
		}
	}
	return left
}
