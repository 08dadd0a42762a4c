//go:build race

package sparsetable

import "unsafe"

// Under the race detector memory comes from the heap: the detector does not
// look at mapped memory, and races on rows are what it is to find.

func mapMemory(n int) ([]byte, error) {
	w := make([]uint64, (n+7)/8) // aligned for every use
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n), nil
}

func unmapMemory([]byte) error { return nil }
