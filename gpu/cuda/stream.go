//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// stream implements gpu.Stream.
type stream struct {
	dev       *device
	name      string
	lane                                    // of all operations but those of graphs
	sides     [lanes - 1]lane               // of graphs; nothing runs in them
	marks     []cu.Event                    // between lanes
	capture   *graph                        // that operations go to
	workspace cu.DevicePtr                  // of products; 0: none yet. Each lane has its part
	fused     fused                         // of products that have an epilogue
	values    [C.AIBOX_MAX_ARGUMENTS]uint64 // arguments of the latest launch
}

// lane is a stream of the driver, with what products need there.
type lane struct {
	cu     cu.Stream
	handle C.CUstream
	blas   blas
}

// at is lane i.
func (s *stream) at(i int) *lane {
	if i == 0 {
		return &s.lane
	}
	return &s.sides[i-1]
}

// open creates the driver's stream if it does not exist. REQUIRES: the context is current on the
// thread.
func (l *lane) open() (err error) {
	if l.handle != nil {
		return nil
	}
	if l.cu, err = cu.MakeStream(cu.NonBlocking); err == nil {
		l.handle = C.CUstream(handle(&l.cu))
	}
	return err
}

// openSides opens the other lanes.
func (s *stream) openSides() error {
	for i := range s.sides {
		if err := s.dev.on(s.sides[i].open); err != nil {
			return err
		}
	}
	return nil
}

// free frees everything that the stream has. REQUIRES: the context is current on the thread.
func (s *stream) free() {
	s.fused.free()
	for i := range lanes {
		l := s.at(i)
		l.blas.free()
		if l.handle != nil {
			_ = l.cu.Destroy()
		}
	}
	for i := range s.marks {
		_ = cu.DestroyEvent(&s.marks[i])
	}
	if s.workspace != 0 {
		_ = cu.MemFree(s.workspace)
	}
}

func (s *stream) Name() string       { return s.name }
func (s *stream) Device() gpu.Device { return s.dev }

// failed completes the error of a call of the stream, if there is one.
func (s *stream) failed(call string, err error) error {
	if err == nil {
		return nil
	}
	return complete(err, s.dev.number, fmt.Sprintf("%s in stream %q", call, s.name))
}

// region checks a region that an operation of the stream uses, and returns its memory.
func (s *stream) region(what string, r gpu.Region) (*memory, error) {
	if err := r.Check(what); err != nil {
		return nil, err
	}
	m := bare(r.Memory)
	switch {
	case m == nil || m.dev.p != s.dev.p:
		return nil, gpu.Invalid("%s: %v is memory of another platform", what, r)
	case m.freed:
		return nil, gpu.Invalid("%s: %v was freed", what, m)
	}
	return m, nil
}

// local checks a region that must lie in memory of the stream's device.
func (s *stream) local(what string, r gpu.Region) (*memory, error) {
	m, err := s.region(what, r)
	if err == nil && (m.pinned || m.dev != s.dev) {
		return nil, gpu.Invalid("%s: %v is not in memory of the device", what, m)
	}
	return m, err
}

// count returns the number of rows of a region that are not empty.
func count(r gpu.Region) int {
	if r.Width == 0 {
		return 0
	}
	return r.Rows
}

// pitch returns the distance between rows, which does not matter if there is only one.
func pitch(r gpu.Region) C.uint64_t {
	if r.Rows == 1 {
		return C.uint64_t(r.Width)
	}
	return C.uint64_t(r.Pitch)
}

// Fill implements gpu.Stream.
func (s *stream) Fill(dst gpu.Region, word uint32) error { return s.failed("Fill", s.fill(dst, word)) }

func (s *stream) fill(dst gpu.Region, word uint32) error {
	if err := s.dev.ready(); err != nil {
		return err
	}
	m, err := s.local("the destination", dst)
	if err != nil {
		return err
	}
	if (dst.Offset|dst.Width)%4 != 0 || dst.Rows > 1 && dst.Pitch%4 != 0 {
		return gpu.Invalid("%v is not made of words of 4 bytes", dst)
	}
	if count(dst) == 0 {
		return nil
	}
	if s.capture != nil {
		s.capture.add("Fill", []gpu.Arg{gpu.Write(dst)}, func(l *lane) error { return l.fill(m, dst, word) })
		return nil
	}
	return s.lane.fill(m, dst, word)
}

func (l *lane) fill(m *memory, dst gpu.Region, word uint32) error {
	d := m.dev
	return d.check(C.aibox_fill(d.ctx, l.handle, C.uint64_t(m.address)+C.uint64_t(dst.Offset), pitch(dst), C.uint32_t(word),
		C.uint64_t(dst.Width/4), C.uint64_t(dst.Rows), C.uint64_t(d.p.maxPitch[d.number])))
}

// Synchronize implements gpu.Stream.
func (s *stream) Synchronize() error {
	err := s.dev.ready()
	if err == nil && s.capture != nil {
		err = gpu.Invalid("the stream is being captured")
	}
	if err == nil {
		err = s.dev.wait(s.handle, nil)
	}
	return s.failed("Synchronize", err)
}
