//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
	"gorgonia.org/cu"

	"aibox/gpu"
)

// memory is memory of a device, or pinned memory.
type memory struct {
	dev     *device // which it belongs to
	name    string
	bytes   int
	address uint64         // for devices; of a pinned memory that of the host, too
	host    unsafe.Pointer // of pinned memory
	pinned  bool
	freed   bool
}

// pinned is pinned memory with the methods of the host.
type pinned struct{ *memory }

func (m *memory) Name() string { return m.name }
func (m *memory) Bytes() int   { return m.bytes }

func (m *memory) String() string {
	if m.pinned {
		return fmt.Sprintf("pinned memory %q", m.name)
	}
	return fmt.Sprintf("memory %q of device %d", m.name, m.dev.number)
}

// Alloc implements gpu.Device.
func (d *device) Alloc(name string, bytes int) (gpu.Memory, error) {
	m := &memory{dev: d, name: name, bytes: bytes}
	err := d.do(fmt.Sprintf("allocation of memory %q", name), m.alloc)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AllocPinned implements gpu.Device.
func (d *device) AllocPinned(name string, bytes int) (gpu.Pinned, error) {
	m := &memory{dev: d, name: name, bytes: bytes, pinned: true}
	err := d.do(fmt.Sprintf("allocation of pinned memory %q", name), m.alloc)
	if err != nil {
		return nil, err
	}
	return &pinned{m}, nil
}

func (m *memory) alloc() error {
	d := m.dev
	if m.bytes < 0 {
		return gpu.Invalid("%d bytes", m.bytes)
	}
	var r result
	switch {
	case m.bytes == 0: // nothing will ever use it
	case m.pinned:
		r = result(C.aibox_pinned(d.ctx, C.size_t(m.bytes), &m.host))
		m.address = uint64(uintptr(m.host))
	default:
		p, err := cu.MemAlloc(int64(m.bytes))
		r, m.address = resultOf(err), uint64(p)
	}
	if r == outOfMemory {
		return m.noRoom()
	}
	if err := d.check(C.int(r)); err != nil {
		return err
	}
	d.memories[m] = struct{}{}
	return nil
}

// noRoom is the error if there is not enough memory for m.
func (m *memory) noRoom() error {
	e := &gpu.Error{Kind: gpu.OutOfMemory, Device: m.dev.number, Asked: int64(m.bytes)}
	if !m.pinned {
		e.Free, e.Total, _ = m.dev.room()
		return e
	}
	var host unix.Sysinfo_t
	if unix.Sysinfo(&host) == nil {
		e.Free, e.Total = int64(host.Freeram)*int64(host.Unit), int64(host.Totalram)*int64(host.Unit)
	}
	return e
}

// Free implements gpu.Memory.
func (m *memory) Free() error {
	var err error
	if m.freed {
		err = gpu.Invalid("it was freed before")
	} else {
		_ = m.dev.on(func() error { m.free(); return nil })
	}
	return complete(err, m.dev.number, fmt.Sprintf("Free of %v", m))
}

// free frees the memory. REQUIRES: the context is current on the thread. On a broken device, the
// memory ends with the context.
func (m *memory) free() {
	switch {
	case m.bytes == 0, m.dev.broken != nil:
	case m.pinned:
		_ = cu.MemFreeHost(m.host)
	default:
		_ = cu.MemFree(cu.DevicePtr(m.address))
	}
	m.freed = true
	delete(m.dev.memories, m)
}

// Reading implements gpu.Pinned.
func (m *pinned) Reading(offset, n int) ([]byte, error) { return m.slice("Reading", offset, n) }

// Writing implements gpu.Pinned.
func (m *pinned) Writing(offset, n int) ([]byte, error) { return m.slice("Writing", offset, n) }

func (m *pinned) slice(call string, offset, n int) ([]byte, error) {
	err := m.dev.ready()
	switch {
	case err != nil:
	case m.freed:
		err = gpu.Invalid("the memory was freed")
	default:
		err = gpu.Part(m.memory, offset, n).Check("the slice")
	}
	if err != nil {
		return nil, complete(err, m.dev.number, fmt.Sprintf("%s of %v", call, m.memory))
	}
	if m.bytes == 0 {
		return []byte{}, nil
	}
	return unsafe.Slice((*byte)(m.host), m.bytes)[offset : offset+n : offset+n], nil
}

// bare returns the memory behind an interface; nil if it is of another platform's kind.
func bare(m gpu.Memory) *memory {
	switch m := m.(type) {
	case *memory:
		return m
	case *pinned:
		return m.memory
	}
	return nil
}
