//go:build nvidia && linux && amd64

package cuda

// #cgo CFLAGS: -O2
// #cgo LDFLAGS: -Wl,--as-needed -ldl
// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// Built tells whether the program was built with CUDA.
const Built = true

// platform implements gpu.Platform.
type platform struct {
	options  Options
	driver   int // highest version of CUDA that the driver knows: 1000*major + 10*minor
	infos    []gpu.Info
	maxPitch []int
	primary  []*device // who has the primary context of a physical device
	kept     []bool    // whether it stays when that one is closed
}

// Open returns the platform of this machine's devices. The error is WrongDriver if there are none.
func Open() (gpu.Platform, error) { return OpenWith(Options{}) }

// OpenWith is Open with options.
func OpenWith(o Options) (gpu.Platform, error) {
	p, err := open()
	if err != nil {
		return nil, complete(err, -1, "Open")
	}
	p.options = o
	return p, nil
}

func open() (*platform, error) {
	fail := func(r result, what string) (*platform, error) {
		return nil, &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: what + ": " + r.String()}
	}
	var why *C.char
	r := result(C.aibox_load(&why))
	defer C.free(unsafe.Pointer(why))
	switch {
	case r == libraryMissing && why != nil:
		return nil, &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: "no driver: " + C.GoString(why)}
	case r == noDevice:
		return nil, &gpu.Error{Kind: gpu.WrongDriver, Device: -1, Reason: "the driver finds no device; nvidia-smi lists all devices, and CUDA_VISIBLE_DEVICES restricts which of them programs see"}
	case r != 0:
		return fail(r, "the driver cannot be initialized")
	}
	p := &platform{driver: cu.Version()}
	n, err := cu.NumDevices()
	if err != nil {
		return fail(resultOf(err), "the number of devices")
	}
	for i := range n {
		info, pitch, err := describe(i)
		if err != nil {
			return fail(resultOf(err), fmt.Sprintf("device %d", i))
		}
		p.infos, p.maxPitch = append(p.infos, info), append(p.maxPitch, pitch)
	}
	p.primary, p.kept = make([]*device, n), make([]bool, n)
	return p, nil
}

// cu has no name for it.
const sharedMemoryOptIn cu.DeviceAttribute = C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

func describe(number int) (info gpu.Info, maxPitch int, err error) {
	d, err := cu.GetDevice(number)
	if err != nil {
		return info, 0, err
	}
	if info.Name, err = d.Name(); err != nil {
		return info, 0, err
	}
	if info.MemoryBytes, err = d.TotalMem(); err != nil {
		return info, 0, err
	}
	for _, a := range []struct {
		attribute cu.DeviceAttribute
		value     *int
	}{
		{cu.ComputeCapabilityMajor, &info.Major}, {cu.ComputeCapabilityMinor, &info.Minor}, {cu.MultiprocessorCount, &info.Multiprocessors},
		{sharedMemoryOptIn, &info.SharedBytes}, {cu.MaxPitch, &maxPitch},
	} {
		if *a.value, err = d.Attribute(a.attribute); err != nil {
			return info, 0, err
		}
	}
	info.ProductBytes = lanes * workspaceBytes(info.Major)
	return info, maxPitch, nil
}

// Name implements gpu.Platform.
func (p *platform) Name() string {
	return fmt.Sprintf("CUDA, driver for CUDA %s", version(p.driver))
}

// version writes a version as CUDA counts them.
func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Devices implements gpu.Platform.
func (p *platform) Devices() []gpu.Info { return slices.Clone(p.infos) }

// Link implements gpu.Platform. The driver does not name the kinds of links. Only NVLink has
// atomic operations.
func (p *platform) Link(a, b int) gpu.Link {
	if a == b {
		return gpu.LinkSame
	}
	return min(oneWay(a, b), oneWay(b, a))
}

func oneWay(a, b int) gpu.Link {
	from, to := cu.Device(a), cu.Device(b)
	if can, err := from.CanAccessPeer(to); err != nil || can == 0 {
		return gpu.LinkHost
	}
	if atomic, err := from.P2PAttribute(cu.P2PNativeAomicSupported, to); err != nil || atomic == 0 {
		return gpu.LinkPCIe
	}
	return gpu.LinkNVLink
}
