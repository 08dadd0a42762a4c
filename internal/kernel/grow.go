package kernel

import "unsafe"

// alignment of packed buffers in elements: a cache line, so that no vector
// crosses one.
const alignment = 16

// grow returns a slice of n elements that starts at a cache line, x if it is
// large enough. The contents are undefined.
func grow(x []float32, n int) []float32 {
	if cap(x) >= n {
		return x[:n]
	}
	x = make([]float32, n+n/4+alignment)
	skip := -int(uintptr(unsafe.Pointer(&x[0]))/4) & (alignment - 1)
	return x[skip:][:n]
}
