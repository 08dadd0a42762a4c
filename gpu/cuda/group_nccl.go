//go:build nvidia && linux && amd64

package cuda

// #include "libraries.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"aibox/gpu"
)

// ncclSummer sums up with NCCL.
type ncclSummer struct {
	devices  []*device
	comms    []unsafe.Pointer // communicators, one for each device
	contexts []unsafe.Pointer
	streams  []unsafe.Pointer // of the latest sum
	arrays   []C.uint64_t
}

func newNCCL(devices []*device) (summer, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := len(devices)
	g := &ncclSummer{devices: devices, comms: make([]unsafe.Pointer, n), streams: make([]unsafe.Pointer, n), arrays: make([]C.uint64_t, n)}
	numbers := make([]C.int, n)
	for i, d := range devices {
		numbers[i] = C.int(d.number)
		g.contexts = append(g.contexts, handle(&d.context))
	}
	r := C.aibox_nccl_create(devices[0].ctx, C.int(n), &numbers[0], &g.comms[0])
	if r < 0 {
		return nil, devices[0].check(-r)
	}
	if r != 0 {
		return nil, &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: "NCCL does not start: " + C.GoString(C.aibox_nccl_text(r))}
	}
	return g, nil
}

func (g *ncclSummer) enqueue(streams []*stream, arrays []gpu.Region) (refused bool, err error) {
	runtime.LockOSThread() // NCCL collects the calls of a thread
	defer runtime.UnlockOSThread()
	for i, s := range streams {
		g.streams[i] = unsafe.Pointer(s.handle)
		g.arrays[i] = C.uint64_t(bare(arrays[i].Memory).address) + C.uint64_t(arrays[i].Offset)
	}
	r := C.aibox_nccl_all_reduce(C.int(len(streams)), &g.comms[0], &g.contexts[0], &g.streams[0], &g.arrays[0], C.size_t(arrays[0].Width/4))
	switch {
	case r == 0:
		return false, nil
	case r < 0:
		return false, g.devices[0].check(-r)
	}
	for _, d := range g.devices {
		if d.look(); d.broken != nil {
			return false, d.broken
		}
	}
	return false, &gpu.Error{Kind: gpu.LaunchFailed, Device: -1, Reason: fmt.Sprintf("NCCL: %s", C.GoString(C.aibox_nccl_text(r)))}
}

func (g *ncclSummer) end(abort bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ctx C.CUcontext // of a device that is in order
	for _, d := range g.devices {
		if d.broken == nil && !d.closed {
			ctx = d.ctx
		}
	}
	C.aibox_nccl_destroy(ctx, C.int(len(g.comms)), &g.comms[0], flag(abort))
}
