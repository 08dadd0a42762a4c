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

// The ranges of NVTX that begin and end by a number, not those that are pushed and popped: these belong to a
// thread, and goroutines change threads.

// profiled tells whether there is a profiler: a step has some ranges, and calls of C take a while.
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
