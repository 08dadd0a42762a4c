// Package devicememory has what engines share to grow device memory and pinned memory as needed.
package devicememory

import (
	"errors"
	"fmt"

	"aibox/gpu"
)

// Align is the alignment of all offsets in device memory, in bytes.
const Align = 256

// Aligned rounds bytes up to a multiple of Align.
func Aligned(bytes int) int { return (bytes + Align - 1) / Align * Align }

// Holds reports whether m has at least the given number of bytes.
func Holds(m gpu.Memory, bytes int) bool { return m != nil && m.Bytes() >= bytes }

// Free frees *m, which no device may be using, and sets it to nil.
func Free(m *gpu.Memory) error {
	old := *m
	if old == nil {
		return nil
	}
	*m = nil
	return old.Free()
}

// GrowPinned replaces *m by pinned memory of at least the given number of bytes, unless it is large
// enough already. No device may be using *m. In an error, what says what the memory is for and how
// to need less.
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
		err = fmt.Errorf("the host cannot allocate %d bytes of pinned memory %s: %w", bytes, what, err)
	}
	if err != nil {
		return err
	}
	*m = p
	return nil
}
