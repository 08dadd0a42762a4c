package gputest

import (
	"errors"
	"testing"
	"unsafe"

	"aibox/gpu"
)

// rig is what a test works with. Its methods end the test if something fails.
type rig struct {
	*testing.T
	Subject
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// refuses fails the test unless err is of a kind.
func (r *rig) refuses(what string, err error, kind gpu.Kind) {
	r.Helper()
	if !errors.Is(err, kind) {
		r.Errorf("%s: %v, want: %v", what, err, kind)
	}
}

// must returns v; the test ends if there is an error.
func must[T any](r *rig) func(v T, err error) T {
	return func(v T, err error) T {
		r.Helper()
		r.must(err)
		return v
	}
}

// open opens n devices. Where there are fewer, several are on one physical device.
func (r *rig) open(n int) []gpu.Device {
	r.Helper()
	devices := make([]gpu.Device, n)
	for i := range devices {
		devices[i] = must[gpu.Device](r)(r.Platform.Open(i % len(r.Platform.Devices())))
		r.Cleanup(func() {
			if err := devices[i].Close(); err != nil {
				r.Errorf("Close: %v", err)
			}
		})
	}
	return devices
}

func (r *rig) stream(d gpu.Device, name string) gpu.Stream {
	r.Helper()
	return must[gpu.Stream](r)(d.NewStream(name))
}

func (r *rig) event(d gpu.Device, name string) gpu.Event {
	r.Helper()
	return must[gpu.Event](r)(d.NewEvent(name))
}

func (r *rig) alloc(d gpu.Device, name string, bytes int) gpu.Memory {
	r.Helper()
	return must[gpu.Memory](r)(d.Alloc(name, bytes))
}

func (r *rig) pinned(d gpu.Device, name string, bytes int) gpu.Pinned {
	r.Helper()
	return must[gpu.Pinned](r)(d.AllocPinned(name, bytes))
}

func (r *rig) kernel(d gpu.Device, name string) gpu.Kernel {
	r.Helper()
	return must[gpu.Kernel](r)(must[gpu.Module](r)(d.Load(r.Image)).Kernel(name))
}

// put copies values into a memory, from byte offset on, and waits for that.
func put[T gpu.Number](r *rig, s gpu.Stream, m gpu.Memory, offset int, values []T) {
	r.Helper()
	n := len(values) * int(unsafe.Sizeof(T(0)))
	p := r.pinned(s.Device(), "put", n)
	set(r, p, 0, values)
	r.must(s.Copy(gpu.Part(m, offset, n), gpu.All(p)))
	r.must(s.Synchronize())
	r.must(p.Free())
}

// get copies n values out of a memory, after all that is in the stream.
func get[T gpu.Number](r *rig, s gpu.Stream, m gpu.Memory, offset, n int) []T {
	r.Helper()
	bytes := n * int(unsafe.Sizeof(T(0)))
	p := r.pinned(s.Device(), "get", bytes)
	r.must(s.Copy(gpu.All(p), gpu.Part(m, offset, bytes)))
	r.must(s.Synchronize())
	values := look[T](r, p, 0, n)
	r.must(p.Free())
	return values
}

// set writes values into pinned memory, from byte offset on.
func set[T gpu.Number](r *rig, p gpu.Pinned, offset int, values []T) {
	r.Helper()
	copy(gpu.As[T](must[[]byte](r)(p.Writing(offset, len(values)*int(unsafe.Sizeof(T(0)))))), values)
}

// look returns a copy of n values of pinned memory, from byte offset on.
func look[T gpu.Number](r *rig, p gpu.Pinned, offset, n int) []T {
	r.Helper()
	return append([]T(nil), gpu.As[T](must[[]byte](r)(p.Reading(offset, n*int(unsafe.Sizeof(T(0))))))...)
}

// fill returns n values.
func fill[T any](n int, value func(i int) T) []T {
	values := make([]T, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}
