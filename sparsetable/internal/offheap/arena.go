package offheap

import (
	"errors"
	"unsafe"
)

const (
	// Chunks double from the first to the last size: small tables reserve little address space, and
	// a table of 1 TiB stays well below the 65,530 mappings that Linux allows a process.
	firstChunkBytes = 512 << 10
	lastChunkBytes  = 64 << 20
	doublings       = 7 // from the first to the last
)

// Arena hands out memory that can only be freed all at once. The zero value is empty and ready. It
// is not safe for concurrent use.
type Arena struct {
	chunks [][]byte
	free   []byte // the rest of the last chunk
}

// Alloc returns n zero bytes, aligned to 8. Memory that is mapped but not yet handed out is not
// touched, so it costs only address space.
func (a *Arena) Alloc(n int) ([]byte, error) {
	n = (n + 7) &^ 7
	if n > len(a.free) {
		size := firstChunkBytes << min(len(a.chunks), doublings)
		size = max(min(size, lastChunkBytes), n)
		c, err := Map(size)
		if err != nil {
			return nil, err
		}
		a.chunks = append(a.chunks, c)
		a.free = c
	}
	b := a.free[:n:n]
	a.free = a.free[n:]
	return b, nil
}

// Release frees everything that Alloc returned.
func (a *Arena) Release() error {
	var errs []error
	for _, c := range a.chunks {
		errs = append(errs, Unmap(c))
	}
	*a = Arena{}
	return errors.Join(errs...)
}

// Float32s, Uint32s and Uint64s return b, which must be aligned, as a slice of
// words in the same memory.

func Float32s(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func Uint32s(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func Uint64s(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
