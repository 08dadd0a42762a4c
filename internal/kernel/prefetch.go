package kernel

import "unsafe"

// Prefetch prefetches the cache lines of x, which will be read shortly: rows of tables are at
// unpredictable addresses, given by their keys.
func Prefetch(x []float32) {
	if len(x) > 0 {
		prefetch(unsafe.SliceData(x), len(x))
	}
}
