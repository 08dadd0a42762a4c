// Package directfile reads and writes large files past the page cache if the file system allows it.
// For data that are used once, the page cache costs a memory copy and evicts the pages of other
// files. Reads and writes of whole blocks in memory from Memory are direct; all others go through
// the page cache, as with *os.File.
package directfile

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// block is the alignment of offsets, lengths and addresses: no device requires more, and it is one
// page.
const block = 4096

// Memory returns n bytes that begin at a multiple of a block.
func Memory(n int) []byte {
	b := make([]byte, n+block)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (block - 1)
	return b[skip : skip+n : skip+n]
}

// File is a file that is open twice: with the page cache and, if the file system supports it,
// without. Writes through either descriptor are visible through the other.
type File struct {
	*os.File
	direct  *os.File    // nil: the file system refuses it
	refused atomic.Bool // it takes the descriptor and no reads or writes
}

// Open opens a file as os.OpenFile does.
func Open(path string, flag int, mode os.FileMode) (*File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return With(f, flag), nil
}

// With adds the second descriptor to a file that was opened with these flags.
func With(f *os.File, flag int) *File {
	direct, err := os.OpenFile(f.Name(), flag&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR)|unix.O_DIRECT, 0)
	if err != nil {
		return &File{File: f}
	}
	a, errA := f.Stat()
	b, errB := direct.Stat()
	if errA != nil || errB != nil || !os.SameFile(a, b) { // somebody has replaced it meanwhile
		_ = direct.Close() // nothing was written
		return &File{File: f}
	}
	return &File{File: f, direct: direct}
}

// WriteAt is that of *os.File. The whole blocks of p go past the page cache, and the rest
// through it.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	n := 0
	if k := len(p) &^ (block - 1); f.takes(p[:k], off) {
		var err error
		if n, err = f.direct.WriteAt(p[:k], off); err != nil && !f.refuses(err) {
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	m, err := f.File.WriteAt(p[n:], off+int64(n))
	return n + m, err
}

// ReadAt is that of *os.File, past the page cache if p is whole blocks.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if f.takes(p, off) {
		n, err := f.direct.ReadAt(p, off)
		if err == nil || !f.refuses(err) {
			return n, err
		}
	}
	return f.File.ReadAt(p, off)
}

// takes reports whether p can be moved past the page cache.
func (f *File) takes(p []byte, off int64) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return f.direct != nil && !f.refused.Load() && len(p) > 0 && (uintptr(len(p))|at|uintptr(off))&(block-1) == 0
}

// refuses reports whether an error says that the file system cannot do this without the page
// cache.
func (f *File) refuses(err error) bool {
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
		return false
	}
	f.refused.Store(true)
	return true
}

// Close closes both descriptors.
func (f *File) Close() error {
	err := f.File.Close()
	if f.direct != nil {
		err = errors.Join(err, f.direct.Close())
	}
	return err
}
