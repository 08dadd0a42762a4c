//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"time"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// event implements gpu.Event.
type event struct {
	dev      *device
	name     string
	cu       cu.Event
	handle   C.CUevent
	recorded bool
	deadline time.Time // see lookAround
}

func (e *event) Name() string { return e.name }

// Record implements gpu.Stream.
func (s *stream) Record(e gpu.Event) error { return s.failed("Record", s.record(e)) }

func (s *stream) record(e gpu.Event) error {
	if err := s.dev.ready(); err != nil {
		return err
	}
	mark, ok := e.(*event)
	switch {
	case !ok || mark.dev != s.dev:
		return gpu.Invalid("the event is of another device")
	case s.capture != nil:
		return gpu.Invalid("the stream is being captured")
	}
	err := s.dev.check(C.aibox_record(s.dev.ctx, s.handle, mark.handle))
	if err == nil {
		mark.recorded, mark.deadline = true, time.Time{}
	}
	return err
}

// Wait implements gpu.Stream.
func (s *stream) Wait(e gpu.Event) error { return s.failed("Wait", s.waitFor(e)) }

func (s *stream) waitFor(e gpu.Event) error {
	if err := s.dev.ready(); err != nil {
		return err
	}
	mark, ok := e.(*event)
	switch {
	case !ok || mark.dev.p != s.dev.p:
		return gpu.Invalid("the event is of another platform")
	case !mark.recorded:
		return gpu.Invalid("the event was never recorded")
	case s.capture != nil:
		return gpu.Invalid("the stream is being captured")
	case mark.dev.closed || mark.dev.broken != nil:
		return nil // a closed device has finished, and a broken one orders nothing
	}
	s.dev.mayWaitFor(mark.dev)
	r := C.aibox_wait_event(s.dev.ctx, s.handle, mark.handle)
	if r != 0 && mark.dev != s.dev {
		if mark.dev.look(); mark.dev.broken != nil {
			return nil // it is not this device that the error is about
		}
	}
	return s.dev.check(r)
}

// ready returns an error if calls of the event must fail.
func (e *event) ready() error {
	if err := e.dev.ready(); err != nil {
		return err
	}
	if !e.recorded {
		return gpu.Invalid("the event was never recorded")
	}
	return nil
}

// failed completes the error of a call of the event, if there is one.
func (e *event) failed(call string, err error) error {
	if err == nil {
		return nil
	}
	return complete(err, e.dev.number, fmt.Sprintf("%s of event %q", call, e.name))
}

// Done implements gpu.Event.
func (e *event) Done() (bool, error) {
	err := e.ready()
	if err == nil {
		r := C.aibox_query(e.dev.ctx, nil, e.handle)
		if result(r) == notReady {
			return false, e.failed("Done", e.dev.lookAround(&e.deadline))
		}
		err = e.dev.finished(r)
	}
	return err == nil, e.failed("Done", err)
}

// Synchronize implements gpu.Event.
func (e *event) Synchronize() error {
	err := e.ready()
	if err == nil {
		err = e.dev.wait(nil, e.handle)
	}
	return e.failed("Synchronize", err)
}

// Since implements gpu.Event.
func (e *event) Since(earlier gpu.Event) (time.Duration, error) {
	var milliseconds float64
	err := e.ready()
	from, ok := earlier.(*event)
	switch {
	case err != nil:
	case !ok || from.dev != e.dev:
		err = gpu.Invalid("event %q is of another device", earlier.Name())
	case !from.recorded:
		err = gpu.Invalid("event %q was never recorded", earlier.Name())
	default:
		err = e.dev.on(func() (err error) {
			milliseconds, err = from.cu.Elapsed(e.cu)
			return err
		})
	}
	return time.Duration(milliseconds * float64(time.Millisecond)), e.failed("Since", err)
}
