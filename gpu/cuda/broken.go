//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"slices"
	"time"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// fail marks d as broken, unless it is already, and also the devices that wait for it in an
// AllReduce.
func (d *device) fail(kind gpu.Kind, reason string) {
	if d.broken != nil {
		return
	}
	d.broken = &gpu.Error{Kind: kind, Device: d.number, Reason: reason}
	for _, g := range d.groups {
		g.breaks(d)
	}
}

// failWith marks d as broken, unless it is already, because another device is broken.
func (d *device) failWith(cause *gpu.Error, reason string) {
	if d.broken == nil {
		d.fail(gpu.LaunchFailed, reason)
		d.broken.Cause = cause
	}
}

// look asks the driver whether d is broken.
func (d *device) look() {
	if d.closed || d.broken != nil {
		return
	}
	if r := C.aibox_query(d.ctx, C.CUstream(handle(&d.probe)), nil); result(r) != notReady {
		_ = d.check(r)
	}
}

const (
	// patienceMicroseconds is how long a device waits before it checks others for failures.
	patienceMicroseconds = 2000
	// mercy is how long a device keeps waiting after another one that it may be waiting for has
	// failed: the driver does not say whether the awaited event will still happen.
	mercy = 2 * time.Second
)

// wakefulMicroseconds is how long a thread polls before it sleeps until the device interrupts it.
const wakefulMicroseconds = 100

// wakeful returns how many microseconds a thread polls before it sleeps.
func wakeful() C.long {
	if !gpu.WaitsAwake() {
		return 0
	}
	return wakefulMicroseconds
}

// wait waits until a stream is empty or, if stream is nil, an event has happened.
func (d *device) wait(stream C.CUstream, e C.CUevent) error {
	if len(d.fellows) == 0 {
		return d.check(C.aibox_wait(d.ctx, stream, e, wakeful()))
	}
	var deadline time.Time
	for {
		if r := C.aibox_poll(d.ctx, stream, e, patienceMicroseconds); result(r) != notReady {
			return d.finished(r)
		}
		if err := d.lookAround(&deadline); err != nil {
			return err
		}
	}
}

// finished returns the error of d when what was waited for has happened, with result r.
func (d *device) finished(r C.int) error {
	if err := d.check(r); err != nil {
		return err
	}
	for _, g := range d.groups {
		g.settle()
	}
	if d.broken != nil {
		return d.broken
	}
	return nil
}

// lookAround is called repeatedly while the caller waits for d. It marks d as broken if d waits in
// vain for another device. *deadline is zero at first.
func (d *device) lookAround(deadline *time.Time) error {
	for _, f := range d.fellows {
		f.look()
		if d.broken != nil { // by f, in an AllReduce
			return d.broken
		}
		switch {
		case f.broken == nil:
		case deadline.IsZero():
			*deadline = time.Now().Add(mercy)
		case time.Now().After(*deadline):
			d.failWith(f.broken, "another device, for which it may wait, failed")
			return d.broken
		}
	}
	return nil
}

// Close implements gpu.Device.
func (d *device) Close() error { return complete(d.close(), d.number, "Close") }

func (d *device) close() error {
	if d.closed {
		return gpu.Invalid("the device was closed before")
	}
	if err := d.uncaptured(); err != nil {
		return err
	}
	if d.broken == nil {
		_ = d.finish()
	}
	for _, g := range slices.Clone(d.groups) {
		g.dissolve()
	}
	if d.broken == nil {
		d.empty()
	}
	for m := range d.memories {
		m.freed = true
	}
	d.destroy()
	d.closed = true
	return nil
}

// empty frees everything in the context. A broken context is destroyed as a whole, because the
// driver might wait for events that never happen.
func (d *device) empty() {
	_ = d.on(func() error {
		for _, s := range d.streams {
			s.free()
		}
		for _, g := range d.graphs {
			g.free()
		}
		for _, e := range d.events {
			_ = cu.DestroyEvent(&e.cu)
		}
		for _, m := range d.modules {
			C.aibox_unload(d.ctx, m.handle)
		}
		for m := range d.memories {
			m.free()
		}
		return d.probe.Destroy()
	})
}

// destroy releases the context. A broken one must be destroyed, even the primary one: otherwise its
// error would carry over to the next device that uses it.
func (d *device) destroy() {
	id := cu.Device(d.number)
	if !d.primary {
		_ = d.context.Destroy()
		return
	}
	if d.broken != nil {
		_ = id.ResetPrimaryCtx()
	}
	_ = id.ReleasePrimaryCtx()
	if d.p.primary[d.number] == d {
		d.p.primary[d.number] = nil
	}
}
