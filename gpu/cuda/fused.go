//go:build nvidia && linux && amd64

package cuda

// #cgo noescape aibox_fused
// #cgo nocallback aibox_fused
// #cgo noescape aibox_plan
// #cgo nocallback aibox_plan
// #include "driver.h"
// #include "fused.h"
import "C"

import "aibox/gpu"

// fused is a stream's state for products with an epilogue, which cuBLASLt computes: a handle, and a
// plan for each shape.
type fused struct {
	handle C.cublasLtHandle_t // nil: not needed yet, or cuBLASLt is missing
	plans  map[gpu.ProductShape]plan
}

// plan says how products of a shape are computed, if possible.
type plan struct {
	fuses  bool
	handle *C.aibox_plan_t // nil: C is empty
}

// oldestLt is the oldest version of cuBLASLt that is used, from CUDA 12.2 update 2. Before, sizes
// were limited, and the first versions with these epilogues failed for some products that they had
// claimed to support.
const oldestLt = 12_02_05

// biasAlignment is the alignment of a bias, in bytes, that cuBLASLt's kernels may assume without
// asking for it.
const biasAlignment = 16

// Fuses implements gpu.Stream.
func (s *stream) Fuses(p gpu.Product) (bool, error) {
	fuses, err := s.fuses(&p)
	if err != nil {
		return false, s.failed("Fuses of "+p.String(), err)
	}
	return fuses, nil
}

func (s *stream) fuses(p *gpu.Product) (bool, error) {
	d := s.dev
	if err := d.ready(); err != nil {
		return false, err
	}
	a, b, c, err := s.operands(p)
	if err != nil || !p.Epilogue.Any() {
		return err == nil, err
	}
	shape := p.Shape()
	if known, ok := s.fused.plans[shape]; ok {
		return known.fuses, nil
	}
	if s.capture != nil {
		return false, gpu.Invalid("Fuses was not asked about a product of this shape before the capture")
	}
	if err := s.prepare(); err != nil {
		return false, err
	}
	found, err := s.plan(p, a, b, c)
	if err != nil {
		return false, err
	}
	if s.fused.plans == nil {
		s.fused.plans = map[gpu.ProductShape]plan{}
	}
	s.fused.plans[shape] = found
	return found.fuses, nil
}

// plan determines how products of the shape of p are computed.
func (s *stream) plan(p *gpu.Product, a, b, c gpu.Region) (plan, error) {
	switch {
	case s.dev.p.options.NoEpilogues, p.Shape().AlignBias < biasAlignment, tooLarge(p, a, b, c):
		return plan{}, nil
	case count(c) == 0:
		return plan{fuses: true}, nil
	case p.K == 0: // C would be a function of the bias
		return plan{}, nil
	}
	if can, err := s.fused.prepare(s); !can {
		return plan{}, err
	}
	d, f := s.dev, s.fusedOf(p, a, b, c)
	var found plan
	if can, err := d.answers(C.aibox_plan(d.ctx, s.fused.handle, &f, &found.handle)); !can {
		return plan{}, err
	}
	can, err := s.try(found, f)
	if !can {
		C.aibox_plan_free(found.handle)
		return plan{}, err
	}
	found.fuses = true
	return found, nil
}

// prepare makes the handle, if it can.
func (f *fused) prepare(s *stream) (can bool, err error) {
	d := s.dev
	switch {
	case f.handle != nil:
		return true, nil
	case cublasLt.load(d.p.driver) != nil, C.aibox_lt_version() < oldestLt:
		return false, nil
	}
	return d.answers(C.aibox_lt_create(d.ctx, &f.handle))
}

// free gives all back. The context is that of the thread.
func (f *fused) free() {
	for _, p := range f.plans {
		if p.handle != nil {
			C.aibox_plan_free(p.handle)
		}
	}
	if f.handle != nil {
		C.aibox_lt_destroy(f.handle)
	}
}

// try captures a product and drops the graph: some products fail although the library has an
// algorithm for them. It also loads the code.
func (s *stream) try(with plan, f C.aibox_fused_t) (can bool, err error) {
	d := s.dev
	if err := d.check(C.aibox_capture(d.ctx, s.handle)); err != nil {
		return false, err
	}
	status := C.aibox_fused(d.ctx, s.handle, s.fused.handle, with.handle, &f)
	ended := C.aibox_captured(d.ctx, s.handle, nil)
	if can, err = d.answers(status); !can {
		return false, err
	}
	return d.answers(-ended)
}

// answers reports whether the status means that cuBLASLt, or the driver, can do the operation. It
// returns an error if the status has another cause.
func (d *device) answers(status C.int) (can bool, err error) {
	if status == 0 {
		return true, nil
	}
	if status == C.CUBLAS_STATUS_ALLOC_FAILED {
		return false, d.checkBlas(status)
	}
	if status < 0 {
		_ = d.check(-status)
	}
	if d.look(); d.broken != nil {
		return false, d.broken
	}
	return false, nil
}

// multiplyFused is Multiply of a product with an epilogue.
func (s *stream) multiplyFused(p *gpu.Product, a, b, c gpu.Region) error {
	found, asked := s.fused.plans[p.Shape()]
	switch {
	case !asked:
		return gpu.Invalid("Fuses was not asked about a product of this shape")
	case !found.fuses:
		return gpu.Invalid("Fuses says that it cannot be done in one operation")
	case found.handle == nil:
		return nil
	}
	f := s.fusedOf(p, a, b, c)
	if s.capture != nil {
		s.capture.add(p.String(), p.Args(a, b, c), func(l *lane) error { return s.multiplyIn(l, found.handle, f) })
		return nil
	}
	return s.multiplyIn(&s.lane, found.handle, f)
}

// multiplyIn does a product in a lane.
func (s *stream) multiplyIn(l *lane, with *C.aibox_plan_t, f C.aibox_fused_t) error {
	f.workspace = C.uint64_t(l.blas.workspace)
	return s.dev.checkBlas(C.aibox_fused(s.dev.ctx, l.handle, s.fused.handle, with, &f))
}

// fusedOf converts a product and its epilogue to cuBLASLt's column-major form: a row of C is a
// column there, to which the bias is added.
func (s *stream) fusedOf(p *gpu.Product, a, b, c gpu.Region) C.aibox_fused_t {
	f := C.aibox_fused_t{
		gemm: gemm(p, a, b, c), workspace: C.uint64_t(s.blas.workspace), workspace_bytes: C.size_t(s.dev.workspaceBytes()),
	}
	if bias := p.Epilogue.Bias; bias.Memory != nil {
		f.bias, f.epilogue = addressOf(bias), C.CUBLASLT_EPILOGUE_BIAS
	}
	if p.Epilogue.ReLU {
		f.epilogue |= C.CUBLASLT_EPILOGUE_RELU
	}
	return f
}
