//go:build !nvidia || !linux || !amd64

package cuda

import "aibox/gpu"

// Built tells whether the program was built with CUDA.
const Built = false

// Open returns an error.
func Open() (gpu.Platform, error) {
	return nil, &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Call: "Open", Reason: "this binary was built without CUDA; build it with make build-cuda"}
}

// OpenWith returns an error.
func OpenWith(Options) (gpu.Platform, error) { return Open() }

// Describe says what devices there are, one line each, or why there are none.
func Describe() []string { return []string{"built without CUDA"} }
