//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"reflect"

	"aibox/gpu"
)

// result is a CUresult. 0 is success.
type result int

const (
	notReady       result = C.CUDA_ERROR_NOT_READY
	outOfMemory    result = C.CUDA_ERROR_OUT_OF_MEMORY
	deviceInUse    result = C.CUDA_ERROR_DEVICE_UNAVAILABLE
	libraryMissing result = C.CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
	unknownError   result = C.CUDA_ERROR_UNKNOWN
	noDevice       result = C.CUDA_ERROR_NO_DEVICE
	contained      result = 226 // CUDA_ERROR_CONTAINED of CUDA 12.8: an error of the hardware, or of an access to another device by NVLink, which no kernel makes
)

// resultOf returns the result behind an error of package cu, whose type is an integer that is not
// exported.
func resultOf(err error) result {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if v := reflect.ValueOf(e); v.CanInt() {
			return result(v.Int())
		}
	}
	if err != nil {
		return unknownError
	}
	return 0
}

// kinds are the kinds of results; all others are failures of an operation.
var kinds = map[result]gpu.Kind{
	C.CUDA_ERROR_INVALID_VALUE:                  gpu.InvalidArgument,
	C.CUDA_ERROR_INVALID_HANDLE:                 gpu.InvalidArgument,
	C.CUDA_ERROR_INVALID_IMAGE:                  gpu.InvalidArgument,
	C.CUDA_ERROR_INVALID_PTX:                    gpu.InvalidArgument,
	C.CUDA_ERROR_INVALID_SOURCE:                 gpu.InvalidArgument,
	C.CUDA_ERROR_NOT_FOUND:                      gpu.InvalidArgument,
	C.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:        gpu.InvalidArgument,
	C.CUDA_ERROR_NOT_PERMITTED:                  gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:     gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:     gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_MERGE:           gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:       gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_UNJOINED:        gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_ISOLATION:       gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:        gpu.InvalidArgument,
	C.CUDA_ERROR_CAPTURED_EVENT:                 gpu.InvalidArgument,
	C.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:    gpu.InvalidArgument,
	C.CUDA_ERROR_NOT_READY:                      gpu.InvalidArgument,
	C.CUDA_ERROR_OUT_OF_MEMORY:                  gpu.OutOfMemory,
	C.CUDA_ERROR_CONTEXT_ALREADY_IN_USE:         gpu.InUse,
	C.CUDA_ERROR_NOT_INITIALIZED:                gpu.WrongDriver,
	C.CUDA_ERROR_STUB_LIBRARY:                   gpu.WrongDriver,
	C.CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:      gpu.WrongDriver,
	C.CUDA_ERROR_NOT_SUPPORTED:                  gpu.WrongDriver,
	C.CUDA_ERROR_NO_BINARY_FOR_GPU:              gpu.WrongDriver,
	C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:        gpu.WrongDriver,
	C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND:         gpu.WrongDriver,
	C.CUDA_ERROR_JIT_COMPILATION_DISABLED:       gpu.WrongDriver,
	C.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:        gpu.WrongDriver,
	C.CUDA_ERROR_SYSTEM_NOT_READY:               gpu.WrongDriver,
	C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:         gpu.WrongDriver,
	C.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: gpu.WrongDriver,
	C.CUDA_ERROR_ECC_UNCORRECTABLE:              gpu.ECC,
	C.CUDA_ERROR_DEINITIALIZED:                  gpu.DeviceLost,
	C.CUDA_ERROR_DEVICE_UNAVAILABLE:             gpu.DeviceLost,
	C.CUDA_ERROR_NO_DEVICE:                      gpu.DeviceLost,
	C.CUDA_ERROR_INVALID_DEVICE:                 gpu.DeviceLost,
	C.CUDA_ERROR_EXTERNAL_DEVICE:                gpu.DeviceLost,
	C.CUDA_ERROR_NVLINK_UNCORRECTABLE:           gpu.DeviceLost,
	C.CUDA_ERROR_UNKNOWN:                        gpu.DeviceLost,
	contained:                                   gpu.DeviceLost,
}

// ofKernel reports whether r is a kernel failure; these are the driver's codes for it.
func (r result) ofKernel() bool {
	return r >= C.CUDA_ERROR_ILLEGAL_ADDRESS && r < C.CUDA_ERROR_NOT_PERMITTED
}

// kind returns the kind of error of an open device that gets r.
func (r result) kind() gpu.Kind {
	if k, ok := kinds[r]; ok {
		return k
	}
	return gpu.LaunchFailed
}

func (r result) String() string {
	var text *C.char
	name := C.GoString(C.aibox_error_name(C.int(r), &text))
	return fmt.Sprintf("%s (%d, %s)", name, int(r), C.GoString(text))
}

// complete adds the call to an error of this package.
func complete(err error, number int, call string) error {
	e, ok := err.(*gpu.Error)
	if !ok {
		return err
	}
	full := *e
	full.Call = call
	if full.Device < 0 {
		full.Device = number
	}
	return &full
}
