//go:build !race

package blockio

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory returns n zero bytes outside the garbage collector's heap, aligned
// to a page.
func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("blockio: map %d bytes of memory: %w", n, err)
	}
	return b, nil
}

// unmapMemory unmaps memory of mapMemory.
func unmapMemory(b []byte) {
	if err := unix.Munmap(b); err != nil {
		panic(fmt.Sprintf("blockio: unmap %d bytes: %v", len(b), err)) // not memory of mapMemory
	}
}
