// Package devicememory has what engines have in common that make the memory of devices, and pinned
// memory, larger as they need it.
package devicememory

import (
	"errors"
	"fmt"

	"aibox/gpu"
)

// Align is the unit of all places in memory of devices, in bytes.
const Align = 256

// Aligned is bytes, rounded up to a multiple of Align.
func Aligned(bytes int) int { return (bytes + Align - 1) / Align * Align }

// Holds tells whether there is memory, of at least so many bytes.
func Holds(m gpu.Memory, bytes int) bool { return m != nil && m.Bytes() >= bytes }

// Free gives memory back that no device uses, and makes it nil.
func Free(m *gpu.Memory) error {
	old := *m
	if old == nil {
		return nil
	}
	*m = nil
	return old.Free()
}

// GrowPinned replaces *m, unless it is large enough, by pinned memory of at least so many bytes. No
// device may use it. What says in an error what the memory is for, and how to need less.
func GrowPinned(dev gpu.Device, m *gpu.Pinned, name string, bytes int, what string) error {
	if old := *m; old != nil {
		if old.Bytes() >= bytes {
			return nil
		}
		*m = nil
		if err := old.Free(); err != nil {
			return err
		}
	}
	p, err := dev.AllocPinned(name, max(bytes, 1))
	if errors.Is(err, gpu.OutOfMemory) {
		err = fmt.Errorf("the host has no room for %d bytes of pinned memory %s: %w", bytes, what, err)
	}
	if err != nil {
		return err
	}
	*m = p
	return nil
}
