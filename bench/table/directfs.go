package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// directFS reads Pebble's tables past the page cache, which would serve them from memory
// that no budget counts. Writes, and files that are opened for sequential reading, as
// compactions do, still use the page cache: they need the kernel's read-ahead and
// write-behind.
type directFS struct {
	vfs.FS
	reads    atomic.Int64 // of tables, past the page cache
	buffered atomic.Bool  // the file system has no direct I/O
}

// directUnit suits every device: offsets, lengths and addresses of direct reads
// are multiples of it.
const directUnit = 4096

// Open implements vfs.FS.
func (d *directFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if err != nil || filepath.Ext(name) != ".sst" || slices.Contains(opts, vfs.SequentialReadsOption) {
		return f, err
	}
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		d.buffered.Store(true)
		return f, nil
	}
	return &directFile{File: f, fd: fd, fs: d}, nil
}

// Unwrap implements vfs.FS.
func (d *directFS) Unwrap() vfs.FS { return d.FS }

// directFile reads with direct I/O; all else goes to the file beneath.
type directFile struct {
	vfs.File
	fd int
	fs *directFS
}

// directBuffers are aligned.
var directBuffers = sync.Pool{New: func() any { return new([]byte) }}

func takeDirect(n int) *[]byte {
	b := directBuffers.Get().(*[]byte)
	if cap(*b) < n {
		whole := make([]byte, n+directUnit)
		skip := -int(uintptr(unsafe.Pointer(&whole[0]))) & (directUnit - 1)
		*b = whole[skip : skip+n]
	}
	*b = (*b)[:n]
	return b
}

// ReadAt implements io.ReaderAt. It reads whole units around p's range.
func (f *directFile) ReadAt(p []byte, off int64) (int, error) {
	from := off &^ (directUnit - 1)
	n := int((off+int64(len(p))+directUnit-1)&^(directUnit-1) - from)
	b := takeDirect(n)
	defer directBuffers.Put(b)
	f.fs.reads.Add(1)
	got, err := unix.Pread(f.fd, *b, from)
	for err == unix.EINTR {
		got, err = unix.Pread(f.fd, *b, from)
	}
	if err != nil {
		return 0, fmt.Errorf("direct read of %d bytes at %d: %w", n, from, err)
	}
	if skip := int(off - from); got >= skip+len(p) {
		return copy(p, (*b)[skip:]), nil
	}
	return f.File.ReadAt(p, off) // the end of the file is within the range
}

// Prefetch does nothing: direct reads would not use what it fetches.
func (f *directFile) Prefetch(int64, int64) error { return nil }

// Fd implements vfs.File.
func (f *directFile) Fd() uintptr { return vfs.InvalidFd }

// Close implements io.Closer.
func (f *directFile) Close() error {
	err := unix.Close(f.fd)
	if e := f.File.Close(); e != nil {
		err = e
	}
	return err
}
