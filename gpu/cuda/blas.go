//go:build nvidia && linux && amd64

package cuda

// #include "libraries.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// blas is the handle of cuBLAS that a stream has, with a workspace. Each stream has its own: with a
// common one, results could depend on what else is running.
type blas struct {
	handle    C.cublasHandle_t
	workspace cu.DevicePtr
	current   cu.DevicePtr // the workspace that the handle uses: this one, or that of a graph
}

// workspaceBytes is what NVIDIA recommends for a device.
func workspaceBytes(i gpu.Info) int64 {
	if i.Major >= 9 {
		return 32 << 20
	}
	return 4 << 20
}

// prepare makes the handle, unless there is one.
func (b *blas) prepare(s *stream) error {
	if b.handle != nil {
		return nil
	}
	d := s.dev
	if err := cublas.load(d.p.driver); err != nil {
		return err
	}
	if b.workspace == 0 {
		var err error
		if b.workspace, err = d.newWorkspace(); err != nil {
			return err
		}
	}
	return d.checkBlas(C.aibox_blas_create(d.ctx, s.handle, &b.handle))
}

// newWorkspace allocates memory for cuBLAS.
func (d *device) newWorkspace() (p cu.DevicePtr, err error) {
	err = d.on(func() (err error) {
		p, err = cu.MemAlloc(workspaceBytes(d.Info()))
		if resultOf(err) == outOfMemory {
			e := &gpu.Error{Kind: gpu.OutOfMemory, Device: d.number, Asked: workspaceBytes(d.Info()), Reason: "the workspace of cuBLAS"}
			e.Free, e.Total, _ = d.room()
			return e
		}
		return err
	})
	return p, err
}

// use makes the handle use a workspace.
func (b *blas) use(d *device, workspace cu.DevicePtr) error {
	if b.current == workspace {
		return nil
	}
	err := d.checkBlas(C.aibox_blas_workspace(d.ctx, b.handle, C.uint64_t(workspace), C.size_t(workspaceBytes(d.Info()))))
	if err == nil {
		b.current = workspace
	}
	return err
}

// free gives the handle back. The context is that of the thread.
func (b *blas) free() {
	if b.handle != nil {
		C.aibox_blas_destroy(b.handle)
	}
	if b.workspace != 0 {
		_ = cu.MemFree(b.workspace)
	}
}

// checkBlas returns the error of a function of cuBLAS.
func (d *device) checkBlas(status C.int) error {
	if status <= 0 {
		return d.check(-status)
	}
	e := &gpu.Error{Kind: gpu.LaunchFailed, Device: d.number, Reason: fmt.Sprintf("cuBLAS reports status %d", int(status))}
	switch status {
	case C.CUBLAS_STATUS_ALLOC_FAILED:
		e.Kind = gpu.OutOfMemory
		_ = d.on(func() (err error) { e.Free, e.Total, err = d.room(); return err })
	case C.CUBLAS_STATUS_INVALID_VALUE:
		e.Kind = gpu.InvalidArgument
	case C.CUBLAS_STATUS_NOT_INITIALIZED, C.CUBLAS_STATUS_ARCH_MISMATCH, C.CUBLAS_STATUS_NOT_SUPPORTED:
		e.Kind = gpu.WrongDriver
	}
	// Whatever cuBLAS says, a broken context is the reason.
	if d.look(); d.broken == nil && e.Kind.Breaks() {
		d.fail(e.Kind, e.Reason)
	}
	if d.broken != nil {
		return d.broken
	}
	return e
}
