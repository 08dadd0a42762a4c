package remote

import (
	"sync/atomic"

	"aibox/internal/directfile"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/reader/source"
)

// chunkBytes is how much is fetched at once for a waiting reader. A disk or a DataNode takes
// a few milliseconds to send it, most of them to find it.
const chunkBytes = 1 << 20

// chunkState says whether the bytes of a chunk have arrived.
type chunkState uint8

const (
	absent chunkState = iota
	coming            // being fetched
	here
)

// arrivingFile is a file that misses bytes.
type arrivingFile struct {
	*File
	out   *directfile.File // nil if the file is only read: see Reading
	parts []arrivingPart
	whole atomic.Bool // nothing is missing, and everything was verified
}

type arrivingPart struct {
	*Part
	offset int64        // in the file
	chunks []chunkState // under Arriving.mu
}

// newArrivingFile returns a file of which nothing has arrived.
func newArrivingFile(file *File) *arrivingFile {
	f := &arrivingFile{File: file}
	for i, offset := 0, int64(0); i < len(file.Parts); i++ {
		p := &file.Parts[i]
		f.parts = append(f.parts, arrivingPart{Part: p, offset: offset, chunks: make([]chunkState, (p.Bytes+chunkBytes-1)/chunkBytes)})
		offset += p.Bytes
	}
	return f
}

// each calls fn for the chunks that contain the bytes [from, to), until fn returns false.
func (f *arrivingFile) each(from, to int64, fn func(p *arrivingPart, i int) bool) bool {
	for i := range f.parts {
		p := &f.parts[i]
		first, last := max(from, p.offset)-p.offset, min(to, p.offset+p.Bytes)-p.offset
		for at := first &^ (chunkBytes - 1); first < last && at < last; at += chunkBytes {
			if !fn(p, int(at/chunkBytes)) {
				return false
			}
		}
	}
	return true
}

// chunk returns the size of a chunk.
func (p *arrivingPart) chunk(i int) int64 { return min(chunkBytes, p.Bytes-int64(i)*chunkBytes) }

func (f *arrivingFile) write(b []byte, offset int64) error {
	err := diskfault.At("write", f.out.Name())
	if err == nil {
		_, err = f.out.WriteAt(b, offset)
	}
	return onDisk(err)
}

func (f *arrivingFile) sync() error {
	err := diskfault.At("sync", f.out.Name())
	if err == nil {
		err = f.out.Sync()
	}
	return onDisk(err)
}

// diskError is a failure of the disk to which files arrive, as opposed to the remote directory.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// onDisk marks an error as one of the disk to which files arrive, unless the disk is only full.
func onDisk(err error) error {
	if err == nil || source.Full(err) {
		return err
	}
	return &diskError{err}
}

// removed reports whether no directory has the file any more.
func (f *arrivingFile) removed() bool { return disk.Deleted(f.out.File) }
