package gpu

import "unsafe"

// Memory is a range of bytes, of a device or of the host.
type Memory interface {
	Name() string
	Bytes() int
	// Free gives the memory back. See "What must stay alive" in the documentation of the package.
	Free() error
}

// Pinned is memory of the host that devices copy from and to. The host calls
// Reading or Writing each time before it looks at the memory or changes it, and after the
// synchronization that allows it: they cost nothing, and tell the emulation what the
// host does. It uses their slices no longer than until it enqueues the next operation that
// writes, or for Writing uses, these bytes.
type Pinned interface {
	Memory
	// Reading returns bytes [offset, offset+n) for reading.
	Reading(offset, n int) ([]byte, error)
	// Writing returns bytes [offset, offset+n), of which the host will write every one.
	Writing(offset, n int) ([]byte, error)
}

// Number is a type that memory can be seen as.
type Number interface {
	~float32 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~uint16 | ~byte
}

// As returns b as a slice of numbers of the host's byte order, which is that of the devices. It panics
// unless b begins and ends at multiples of their size.
func As[T Number](b []byte) []T {
	size := unsafe.Sizeof(T(0))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%size != 0 || uintptr(len(b))%size != 0 {
		panic("gpu.As: bytes that do not begin or end at a number")
	}
	return unsafe.Slice((*T)(p), uintptr(len(b))/size)
}
