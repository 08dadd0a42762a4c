//go:build !race

package offheap

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePageBytes = 2 << 20
	// hugeFrom is the smallest mapping for which huge pages are requested. Large mappings are read
	// at random places, where an access misses the processor's TLB as well as its caches. In
	// smaller mappings, rounding up to whole huge pages would waste too much.
	hugeFrom = 2 * hugePageBytes
)

// Map returns n zero bytes outside the garbage collector's heap, aligned to a page. The system
// backs them with memory when they are first touched; for 4 MiB or more it uses huge pages if it
// has them.
func Map(n int) ([]byte, error) {
	extra := 0
	if n >= hugeFrom {
		extra = hugePageBytes
	}
	size := (n + pageBytes - 1) &^ (pageBytes - 1)
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size+extra), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	if extra > 0 {
		p = alignHuge(p, size)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

const pageBytes = 4096

// alignHuge trims a mapping, which is one huge page too long, to size bytes that start at a huge
// page, and requests huge pages. It ignores refusals of the system: then more address space stays
// reserved, or accesses are slower.
func alignHuge(p unsafe.Pointer, size int) unsafe.Pointer {
	head := -uintptr(p) & (hugePageBytes - 1)
	aligned := unsafe.Add(p, head)
	if head > 0 {
		_ = unix.MunmapPtr(p, head)
	}
	if tail := hugePageBytes - head; tail > 0 {
		_ = unix.MunmapPtr(unsafe.Add(aligned, size), tail)
	}
	_ = unix.Madvise(unsafe.Slice((*byte)(aligned), size), unix.MADV_HUGEPAGE)
	return aligned
}

// Unmap frees all the memory that one call of Map returned.
func Unmap(b []byte) error {
	size := (len(b) + pageBytes - 1) &^ (pageBytes - 1)
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(size)); err != nil {
		return fmt.Errorf("unmap %d bytes of memory: %w", len(b), err)
	}
	return nil
}

// Discard frees the memory behind b, which must be whole pages of what Map returned. They read as
// zeros when they are touched again.
func Discard(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("give back %d bytes of memory: %w", len(b), err)
	}
	return nil
}
