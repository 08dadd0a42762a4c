package cuda

import (
	"errors"
	"fmt"

	"aibox/gpu"
)

// align is the unit of all places in device memory, in bytes.
const align = 256

func aligned(bytes int) int { return (bytes + align - 1) / align * align }

// alloc allocates memory of the device. What says what for, and how to need less.
func (r *replica) alloc(name string, bytes int, what string) (gpu.Memory, error) {
	m, err := r.dev.Alloc(name, bytes)
	return m, r.noRoom(err, int64(bytes), what)
}

// noRoom completes an error of out of memory.
func (r *replica) noRoom(err error, bytes int64, what string) error {
	if errors.Is(err, gpu.OutOfMemory) {
		err = fmt.Errorf("device %d has no room for %d bytes %s%s: %w", r.dev.Number(), bytes, what, r.others(err), err)
	}
	return err
}

// batchMemory says what memory for a mini-batch is for, in errors.
func batchMemory(what string, n, all int) string {
	if n != all {
		return fmt.Sprintf("for %s of the %d examples that it gets of a mini-batch of %d; a smaller training.batch_size needs less (`aibox config check` says which fits)", what, n, all)
	}
	return fmt.Sprintf("for %s of a mini-batch of %d examples; a smaller training.batch_size needs less (`aibox config check` says which fits)", what, n)
}

// holds tells whether there is memory, of at least so many bytes.
func holds(m gpu.Memory, bytes int) bool { return m != nil && m.Bytes() >= bytes }

// grow replaces *m by memory of at least so many bytes. The device must be done with it.
func (r *replica) grow(m *gpu.Memory, name string, bytes int, what string) error {
	if holds(*m, bytes) {
		return nil
	}
	if err := r.free(m); err != nil {
		return err
	}
	var err error
	*m, err = r.alloc(name, bytes, what)
	return err
}

func (r *replica) free(m *gpu.Memory) error {
	if *m == nil {
		return nil
	}
	old := *m
	*m = nil
	return old.Free()
}

// growPinned replaces *m by pinned memory of at least so many bytes. No device may use it.
func (r *replica) growPinned(m *gpu.Pinned, name string, bytes int, what string) error {
	if *m != nil {
		old := *m
		*m = nil
		if err := old.Free(); err != nil {
			return err
		}
	}
	p, err := r.dev.AllocPinned(name, bytes)
	if errors.Is(err, gpu.OutOfMemory) {
		err = fmt.Errorf("the host has no room for %d bytes of pinned memory %s: %w", bytes, what, err)
	}
	if err != nil {
		return err
	}
	*m = p
	return nil
}

// numbers returns pinned memory as float32 for reading.
func numbers(m gpu.Pinned, offset, n int) ([]float32, error) {
	b, err := m.Reading(offset, 4*n)
	if err != nil {
		return nil, err
	}
	return gpu.As[float32](b), nil
}

// room returns pinned memory as float32, of which the caller writes all.
func room(m gpu.Pinned, offset, n int) ([]float32, error) {
	b, err := m.Writing(offset, 4*n)
	if err != nil {
		return nil, err
	}
	return gpu.As[float32](b), nil
}
