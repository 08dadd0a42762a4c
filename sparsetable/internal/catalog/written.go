package catalog

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WrittenBytes is the number of bytes written to the catalog's files since Open: pages, Pebble's
// indexes and metadata, and compactions. It does not include what the file system writes for its
// own purposes.
func (c *Catalog) WrittenBytes() int64 { return c.written.Load() }

// countingFS counts the bytes written to the files that it makes.
type countingFS struct {
	vfs.FS
	bytes *atomic.Int64
}

func (fs countingFS) Unwrap() vfs.FS { return fs.FS }

func (fs countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.counted(fs.FS.Create(name, category))
}

func (fs countingFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.counted(fs.FS.ReuseForWrite(oldname, newname, category))
}

func (fs countingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.counted(fs.FS.OpenReadWrite(name, category, opts...))
}

func (fs countingFS) counted(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countingFile{f, fs.bytes}, nil
}

type countingFile struct {
	vfs.File
	bytes *atomic.Int64
}

func (f countingFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.bytes.Add(int64(n))
	return n, err
}

func (f countingFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.bytes.Add(int64(n))
	return n, err
}
