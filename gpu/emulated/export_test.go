package emulated

import "unsafe"

// Beyond returns a slice of x and the guard behind it.
func Beyond(x []uint32) []uint32 {
	return unsafe.Slice(unsafe.SliceData(x), len(x)+guard/4)
}
