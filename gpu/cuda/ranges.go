//go:build nvidia && linux && amd64

package cuda

// #cgo noescape aibox_range_start
// #cgo nocallback aibox_range_start
// #cgo nocallback aibox_range_end
// #include "ranges.h"
import "C"

import (
	"unsafe"

	"aibox/gpu"
)

// This file uses NVTX ranges that start and end by ID. Ranges that are pushed and popped belong to
// a thread, but goroutines change threads.

// profiled reports whether there is a profiler. Without one, the C calls for a step's ranges are
// saved.
var profiled = C.aibox_ranges() != 0

// StartRange implements gpu.Ranger.
func (p *platform) StartRange(name string) gpu.Range {
	if !profiled {
		return 0
	}
	return gpu.Range(C.aibox_range_start((*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name))))
}

// EndRange implements gpu.Ranger.
func (p *platform) EndRange(r gpu.Range) {
	if profiled {
		C.aibox_range_end(C.uint64_t(r))
	}
}
