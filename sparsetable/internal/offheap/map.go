//go:build !race

package offheap

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Map returns n zero bytes outside the garbage collector's heap, aligned to a
// page. The system backs them with memory when they are first touched.
func Map(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	return b, nil
}

// Unmap gives back what Map returned, all of it.
func Unmap(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes of memory: %w", len(b), err)
	}
	return nil
}
