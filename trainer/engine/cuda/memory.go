package cuda

import (
	"errors"
	"fmt"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
)

// alloc allocates device memory. what says for an error what the memory is for and how to need
// less.
func (r *replica) alloc(name string, bytes int, what string) (gpu.Memory, error) {
	m, err := r.dev.Alloc(name, bytes)
	return m, r.noRoom(err, int64(bytes), what)
}

// noRoom adds to an out-of-memory error what the memory was for, and who uses the device.
func (r *replica) noRoom(err error, bytes int64, what string) error {
	if errors.Is(err, gpu.OutOfMemory) {
		err = fmt.Errorf("device %d cannot allocate %d bytes %s%s: %w", r.dev.Number(), bytes, what, r.others(err), err)
	}
	return err
}

// batchMemory describes memory for n of the examples of a mini-batch, which has all, for errors.
func batchMemory(what string, n, all int) string {
	if n != all {
		return fmt.Sprintf("for %s of its %d examples of a mini-batch of %d; a smaller training.batch_size needs less (`aibox config check` says which fits)", what, n, all)
	}
	return fmt.Sprintf("for %s of a mini-batch of %d examples; a smaller training.batch_size needs less (`aibox config check` says which fits)", what, n)
}

// grow replaces *m by memory of at least the given bytes. REQUIRES: the device no longer uses *m.
func (r *replica) grow(m *gpu.Memory, name string, bytes int, what string) error {
	if devicememory.Holds(*m, bytes) {
		return nil
	}
	if err := devicememory.Free(m); err != nil {
		return err
	}
	var err error
	*m, err = r.alloc(name, bytes, what)
	return err
}

// numbers returns n float32 of pinned memory for reading.
func numbers(m gpu.Pinned, offset, n int) ([]float32, error) {
	b, err := m.Reading(offset, 4*n)
	if err != nil {
		return nil, err
	}
	return gpu.As[float32](b), nil
}

// room returns n float32 of pinned memory, all of which the caller writes.
func room(m gpu.Pinned, offset, n int) ([]float32, error) {
	b, err := m.Writing(offset, 4*n)
	if err != nil {
		return nil, err
	}
	return gpu.As[float32](b), nil
}
