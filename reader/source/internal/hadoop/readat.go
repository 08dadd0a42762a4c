package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"aibox/reader/source/internal/fsys"
)

// readerAt serves random reads from a few sequential readers, since a Parquet reader asks for the
// pages of a column one after the other, and for those of several columns in turn. Each reader
// continues where it stands; opening one costs a connection to a DataNode.
type readerAt struct {
	ctx    context.Context
	c      *Cluster
	f      fsys.File
	blocks *fileBlocks

	mu struct {
		sync.Mutex
		idle   []*reader // least recently used first
		closed bool
	}
}

const (
	// maxStreams is how many readers are kept open per file, each of which has a
	// DataNode connection with a buffer. If more columns than that are read in turn,
	// each read costs a new connection. 128 are enough for 64 columns in two row
	// groups at a time.
	maxStreams = 128
	// maxSkipBytes is the largest gap, such as the one between two pages, that a
	// reader skips by reading it. A larger value would take away the reader of
	// another column.
	maxSkipBytes = 16 << 10
)

func (c *Cluster) OpenAt(ctx context.Context, path string, f fsys.File) (fsys.ReaderAtCloser, error) {
	a := &readerAt{ctx: ctx, c: c, f: f}
	r, err := c.OpenRange(ctx, path, f, 0)
	if err != nil {
		return nil, err
	}
	first := r.(*reader)
	a.blocks = first.blocks
	a.put(first)
	return a, nil
}

// ReadAt implements io.ReaderAt.
func (a *readerAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset %d", a.f.URI, off)
	}
	if off >= a.f.Size {
		return 0, io.EOF
	}
	r, err := a.take(off)
	if err != nil {
		return 0, err
	}
	n, err := 0, error(nil)
	if skip := off - r.offset; skip > 0 {
		_, err = io.CopyN(io.Discard, r, skip)
	}
	if err == nil {
		n, err = io.ReadFull(r, p)
	}
	switch {
	case err == nil:
	case err == io.EOF, err == io.ErrUnexpectedEOF: // the end of the file, which io.ReaderAt wants as a bare io.EOF
		err = io.EOF
	default:
		_ = r.Close() // err says more
		return n, err
	}
	a.put(r)
	return n, err
}

// take returns the idle reader that stands at off or shortly before it, or a new one.
func (a *readerAt) take(off int64) (*reader, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.closed {
		return nil, errors.New("source: read after Close")
	}
	best := -1
	for i, r := range a.mu.idle {
		if r.offset <= off && off-r.offset <= maxSkipBytes && (best < 0 || r.offset > a.mu.idle[best].offset) {
			best = i
		}
	}
	if best < 0 {
		return a.c.newReader(a.ctx, a.blocks, off), nil // opens at the first Read
	}
	r := a.mu.idle[best]
	a.mu.idle = append(a.mu.idle[:best], a.mu.idle[best+1:]...)
	return r, nil
}

// put keeps a reader for later; if there are too many, it closes the least recently
// used one.
func (a *readerAt) put(r *reader) {
	r.closeUnneeded()
	out := r
	a.mu.Lock()
	if !a.mu.closed && r.offset < a.f.Size {
		a.mu.idle = append(a.mu.idle, r)
		if out = nil; len(a.mu.idle) > maxStreams {
			out = a.mu.idle[0]
			a.mu.idle = append(a.mu.idle[:0], a.mu.idle[1:]...)
		}
	}
	a.mu.Unlock()
	if out != nil {
		_ = out.Close() // never fails
	}
}

// Close implements io.Closer.
func (a *readerAt) Close() error {
	a.mu.Lock()
	a.mu.closed = true
	idle := a.mu.idle
	a.mu.idle = nil
	a.mu.Unlock()
	for _, r := range idle {
		_ = r.Close() // never fails
	}
	return nil
}
