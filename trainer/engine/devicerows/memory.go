package devicerows

import (
	"errors"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
)

// grow replaces *m by memory of at least the given bytes; if possible by 1/spare more, since passes
// and mini-batches vary in size. what says for an error what the memory is for and how to need
// less. REQUIRES: no device uses *m.
func (p *part) grow(m *gpu.Memory, name string, bytes int, what string) error {
	if devicememory.Holds(*m, bytes) {
		return nil
	}
	if err := devicememory.Free(m); err != nil {
		return err
	}
	memory, err := p.Alloc(name, devicememory.Aligned(max(bytes+bytes/spare, 1)))
	if errors.Is(err, gpu.OutOfMemory) {
		memory, err = p.Alloc(name, devicememory.Aligned(max(bytes, 1)))
	}
	if err != nil {
		return p.NoRoom(err, int64(bytes), what)
	}
	*m = memory
	return nil
}

// spare: memory that grows gets 1/spare more than needed.
const spare = 8

// DeviceBytes is the memory of r on the device at index d in the argument of New.
func (r *Rows) DeviceBytes(d int) int64 {
	p := r.parts[d]
	return p.passBytes() + bytesOf(p.work, p.inputs[0], p.inputs[1], p.overflow)
}

// passBytes is the memory for rows of passes and their copies.
func (p *part) passBytes() int64 {
	n := bytesOf(p.rows, p.keys)
	for i := range ring {
		n += bytesOf(p.bringing.chunks[i].memory, p.fetching.chunks[i].memory)
	}
	return n
}

func bytesOf(memories ...gpu.Memory) (n int64) {
	for _, m := range memories {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}

// Bytes is the host memory of r.
func (r *Rows) Bytes() int64 {
	n := 8*int64(cap(r.words)) + 4*int64(cap(r.floats)) + r.size
	memories := []gpu.Pinned{r.slots[0].overflow, r.slots[1].overflow}
	for i := range r.feed.ring {
		s := &r.feed.ring[i]
		memories, n = append(memories, s.pinned), n+s.orderBytes
	}
	for _, p := range r.parts {
		for i := range ring {
			memories = append(memories, p.bringing.chunks[i].pinned, p.fetching.chunks[i].pinned)
		}
	}
	for _, m := range memories {
		if m != nil {
			n += int64(m.Bytes())
		}
	}
	return n
}
