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

// StartRange implements gpu.Ranger.
func (p *platform) StartRange(name string) gpu.Range {
	return gpu.Range(C.aibox_range_start((*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name))))
}

// EndRange implements gpu.Ranger.
func (p *platform) EndRange(r gpu.Range) { C.aibox_range_end(C.uint64_t(r)) }
