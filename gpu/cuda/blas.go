//go:build nvidia && linux && amd64

package cuda

// #include "libraries.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// blas is a lane's cuBLAS handle, with its part of the stream's workspace. Each lane has its own
// workspace; with a shared one, results could depend on what else is running. Graphs of a stream
// run one after the other, so they share the workspaces of its lanes. All workspaces have the same
// size, because cuBLAS's choice of algorithm depends on it. With a workspace provided, cuBLAS
// allocates nothing during a capture.
type blas struct {
	handle    C.cublasHandle_t
	workspace cu.DevicePtr
}

// workspaceBytes is the size that NVIDIA recommends for a compute capability.
func workspaceBytes(major int) int64 {
	if major >= 9 {
		return 32 << 20
	}
	return 4 << 20
}

// workspaceBytes is the size of the workspace of a lane.
func (d *device) workspaceBytes() int64 { return workspaceBytes(d.Info().Major) }

// PrepareProducts implements gpu.Stream.
func (s *stream) PrepareProducts() error {
	err := s.dev.ready()
	if err == nil {
		err = s.prepare()
	}
	return s.failed("PrepareProducts", err)
}

// prepare creates the handles and the workspaces if they do not exist.
func (s *stream) prepare() error {
	if s.at(lanes-1).blas.handle != nil {
		return nil
	}
	if s.capture != nil {
		return gpu.Invalid("the stream was not prepared for products before the capture")
	}
	d := s.dev
	if err := cublas.load(d.p.driver); err != nil {
		return err
	}
	if err := s.openSides(); err != nil {
		return err
	}
	if s.workspace == 0 {
		if err := d.on(s.allocate); err != nil {
			return err
		}
	}
	for i := range lanes {
		if err := s.at(i).prepare(d, s.workspace+cu.DevicePtr(int64(i)*d.workspaceBytes())); err != nil {
			return err
		}
	}
	return nil
}

// allocate makes room for the workspaces of all lanes.
func (s *stream) allocate() (err error) {
	d := s.dev
	bytes := d.Info().ProductBytes
	s.workspace, err = cu.MemAlloc(bytes)
	if resultOf(err) == outOfMemory {
		e := &gpu.Error{Kind: gpu.OutOfMemory, Device: d.number, Asked: bytes, Reason: "the workspace of cuBLAS"}
		e.Free, e.Total, _ = d.room()
		return e
	}
	return err
}

// prepare creates the handle of a lane if it does not exist.
func (l *lane) prepare(d *device, workspace cu.DevicePtr) error {
	b := &l.blas
	if b.handle != nil {
		return nil
	}
	b.workspace = workspace
	return d.checkBlas(C.aibox_blas_create(d.ctx, l.handle, C.uint64_t(workspace), C.size_t(d.workspaceBytes()), &b.handle))
}

// free gives the handle back. The context is that of the thread.
func (b *blas) free() {
	if b.handle != nil {
		C.aibox_blas_destroy(b.handle)
	}
}

// scarce is how many free bytes are so few that cuBLAS may not have started for lack of memory:
// it says no more than that it did not. That was seen with 225 MiB (CUDA.jl's issue 1567).
const scarce = 256 << 20

// checkBlas returns the error of a function of cuBLAS.
func (d *device) checkBlas(status C.int) error {
	if status <= 0 {
		return d.check(-status)
	}
	e := &gpu.Error{Kind: gpu.LaunchFailed, Device: d.number, Reason: fmt.Sprintf("cuBLAS reports status %d", int(status))}
	switch status {
	case C.CUBLAS_STATUS_ALLOC_FAILED, C.CUBLAS_STATUS_NOT_INITIALIZED:
		e.Kind = gpu.OutOfMemory
		err := d.on(func() (err error) { e.Free, e.Total, err = d.room(); return err })
		if status == C.CUBLAS_STATUS_NOT_INITIALIZED && (err != nil || e.Free >= scarce) {
			e.Kind = gpu.WrongDriver
		}
	case C.CUBLAS_STATUS_INVALID_VALUE:
		e.Kind = gpu.InvalidArgument
	case C.CUBLAS_STATUS_ARCH_MISMATCH, C.CUBLAS_STATUS_NOT_SUPPORTED:
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
