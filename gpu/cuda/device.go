//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// device implements gpu.Device. It is a context with what was made in it.
type device struct {
	p       *platform
	number  int
	primary bool // its context is the primary one
	context cu.CUContext
	ctx     C.CUcontext
	probe   cu.Stream // nothing runs in it; its state is that of the context
	peers   []*device // whose memory the context can use directly

	streams  []*stream
	events   []*event
	modules  []*module
	graphs   []*graph
	memories map[*memory]struct{}
	groups   []*group
	fellows  []*device // that its streams may wait for

	broken *gpu.Error
	closed bool
}

// handle returns the driver handle in a value of package cu.
func handle[T cu.CUContext | cu.Stream | cu.Event](x *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(x))
}

// Open implements gpu.Platform.
func (p *platform) Open(number int) (gpu.Device, error) {
	d, err := p.open(number)
	if err != nil {
		return nil, complete(err, -1, fmt.Sprintf("Open of device %d", number))
	}
	return d, nil
}

func (p *platform) open(number int) (*device, error) {
	if number < 0 || number >= len(p.infos) {
		return nil, gpu.Invalid("there are %d devices", len(p.infos))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := &device{p: p, number: number, primary: p.primary[number] == nil, memories: map[*memory]struct{}{}}
	id := cu.Device(number)
	var err error
	if d.primary {
		_ = id.SetPrimaryCtxFlags(cu.SchedBlockingSync) // fails if the context exists; it works as it is
		d.context, err = id.RetainPrimaryCtx()
		if err == nil && !p.kept[number] {
			// Nobody releases this one.
			_, err = id.RetainPrimaryCtx()
			p.kept[number] = err == nil
		}
	} else {
		d.context, err = id.MakeContext(cu.SchedBlockingSync)
		if err == nil {
			_, err = cu.PopCurrentCtx()
		}
	}
	if err != nil {
		return nil, p.notOpened(number, resultOf(err))
	}
	d.ctx = C.CUcontext(handle(&d.context))
	if err = cu.SetCurrentContext(d.context); err == nil {
		d.probe, err = cu.MakeStream(cu.NonBlocking)
	}
	if err != nil {
		d.destroy()
		return nil, p.notOpened(number, resultOf(err))
	}
	if d.primary {
		p.primary[number] = d
	}
	return d, nil
}

// Compute modes of a device.
const (
	modeProhibited = C.CU_COMPUTEMODE_PROHIBITED
	modeExclusive  = C.CU_COMPUTEMODE_EXCLUSIVE_PROCESS
)

// notOpened is the error of Open when making a context had result r.
func (p *platform) notOpened(number int, r result) error {
	e := &gpu.Error{Kind: r.kind(), Device: number, Reason: r.String()}
	mode, _ := cu.Device(number).Attribute(cu.ComputeMode)
	switch {
	case mode == modeProhibited:
		e.Kind, e.Reason = gpu.InUse, "its compute mode is prohibited (nvidia-smi -c)"
	case mode == modeExclusive && r != outOfMemory:
		e.Kind, e.Reason = gpu.InUse, "its compute mode allows one process at a time (nvidia-smi -c): "+e.Reason
	case r == deviceInUse:
		e.Kind = gpu.InUse
	case e.Kind == gpu.LaunchFailed && !r.ofKernel():
		e.Kind = gpu.WrongDriver // no operation has failed: there was none
	case e.Kind == gpu.OutOfMemory:
		e.Total = p.infos[number].MemoryBytes
		e.Reason = "there is not enough memory for a context"
	}
	return e
}

func (d *device) Number() int    { return d.number }
func (d *device) Info() gpu.Info { return d.p.infos[d.number] }

// ready returns an error if d is unusable.
func (d *device) ready() error {
	if d.closed {
		return gpu.Invalid("the device was closed")
	}
	if d.broken != nil {
		return d.broken
	}
	return nil
}

// do runs a call that is not about an operation, with the context current on the thread. f returns
// errors of this package and of package cu.
func (d *device) do(call string, f func() error) error {
	err := d.ready()
	if err == nil {
		err = d.on(f)
	}
	return complete(err, d.number, call)
}

// on runs f with the context current on the thread.
func (d *device) on(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cu.SetCurrentContext(d.context)
	if err == nil {
		err = f()
	}
	if _, ok := err.(*gpu.Error); ok || err == nil {
		return err
	}
	return d.check(C.int(resultOf(err)))
}

// check returns the error of a driver call with result r. If the result means that the device is
// broken, d is marked as broken.
func (d *device) check(r C.int) error {
	if r == 0 {
		return nil
	}
	kind := result(r).kind()
	if kind.Breaks() {
		d.fail(kind, result(r).String())
		return d.broken
	}
	return &gpu.Error{Kind: kind, Device: d.number, Reason: result(r).String()}
}

// FreeMemory implements gpu.Device.
func (d *device) FreeMemory() (free, total int64, err error) {
	err = d.do("FreeMemory", func() (err error) {
		free, total, err = d.room()
		return err
	})
	return free, total, err
}

// room is FreeMemory. REQUIRES: the context is current on the thread.
func (d *device) room() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, min(total, d.Info().MemoryBytes), err
}

// NewStream implements gpu.Device.
func (d *device) NewStream(name string) (gpu.Stream, error) {
	s := &stream{dev: d, name: name}
	if err := d.do(fmt.Sprintf("NewStream %q", name), s.open); err != nil {
		return nil, err
	}
	d.streams = append(d.streams, s)
	return s, nil
}

// NewEvent implements gpu.Device.
func (d *device) NewEvent(name string) (gpu.Event, error) {
	e, err := d.newEvent(name, "NewEvent")
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (d *device) newEvent(name, call string) (*event, error) {
	e := &event{dev: d, name: name}
	err := d.do(fmt.Sprintf("%s %q", call, name), func() (err error) {
		e.cu, err = cu.MakeEvent(cu.BlockingSyncEvent)
		return err
	})
	if err != nil {
		return nil, err
	}
	e.handle = C.CUevent(handle(&e.cu))
	d.events = append(d.events, e)
	return e, nil
}

// mayWaitFor records that streams of d may wait for o.
func (d *device) mayWaitFor(o *device) {
	if o != d && !slices.Contains(d.fellows, o) {
		d.fellows = append(d.fellows, o)
	}
}

// Synchronize implements gpu.Device.
func (d *device) Synchronize() error {
	err := d.ready()
	if err == nil {
		err = d.finish()
	}
	return complete(err, d.number, "Synchronize")
}

// uncaptured is an error if a stream is being captured.
func (d *device) uncaptured() error {
	for _, s := range d.streams {
		if s.capture != nil {
			return gpu.Invalid("stream %q is being captured", s.name)
		}
	}
	return nil
}

// finish waits for all streams.
func (d *device) finish() error {
	if err := d.uncaptured(); err != nil {
		return err
	}
	for _, s := range d.streams {
		if err := d.wait(s.handle, nil); err != nil {
			return err
		}
	}
	d.fellows = slices.DeleteFunc(d.fellows, func(f *device) bool { return f.closed || f.broken != nil })
	return nil
}
