package sparsetable

import (
	"errors"
	"unsafe"
)

const (
	// Chunks double from the first to the last size: small tables reserve
	// little address space, and a table of 1 TiB stays well below the 65,530
	// mappings that Linux allows a process.
	firstChunkBytes = 512 << 10
	lastChunkBytes  = 64 << 20
)

// arena hands out memory that lies outside the garbage collector's heap and is
// only freed all at once.
type arena struct {
	chunks [][]byte
	free   []byte // the rest of the last chunk
}

// alloc returns n zero bytes, aligned to 8.
func (a *arena) alloc(n int) ([]byte, error) {
	n = (n + 7) &^ 7
	if n > len(a.free) {
		size := firstChunkBytes << min(len(a.chunks), 7)
		size = max(min(size, lastChunkBytes), n)
		c, err := mapMemory(size)
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

// release unmaps everything.
func (a *arena) release() error {
	var errs []error
	for _, c := range a.chunks {
		errs = append(errs, unmapMemory(c))
	}
	*a = arena{}
	return errors.Join(errs...)
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func words32(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func words64(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
