//go:build race

package blockio

import "unsafe"

// Under the race detector memory comes from the heap, whose objects do not move. The
// detector does not watch mapped memory, and could not find races on buffers there.

func mapMemory(n int) ([]byte, error) {
	const page = 4096
	b := make([]byte, n+page)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	return b[skip : skip+n : skip+n], nil
}

func unmapMemory([]byte) {}
