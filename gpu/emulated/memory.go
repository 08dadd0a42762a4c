package emulated

import (
	"fmt"
	"unsafe"

	"aibox/gpu"
)

// memory is memory of a device, or pinned memory.
type memory struct {
	dev    *device // which it belongs to
	name   string
	pinned bool
	data   []byte
	shadow shadow
	freed  bool
}

// granule is what memory is rounded up to when it is accounted for.
const granule = 256

func rounded(bytes int) int64 { return (int64(bytes) + granule - 1) / granule * granule }

func newMemory(d *device, name string, bytes int, pinned bool) *memory {
	words := make([]uint64, (bytes+7)/8)
	m := &memory{dev: d, name: name, pinned: pinned}
	m.data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:bytes:bytes]
	fillPoison(m.data, 0)
	m.shadow.spans = []span{{hi: bytes}}
	return m
}

func (m *memory) Name() string { return m.name }
func (m *memory) Bytes() int   { return len(m.data) }

func (m *memory) String() string {
	if m.pinned {
		return fmt.Sprintf("pinned memory %q", m.name)
	}
	return fmt.Sprintf("memory %q of device %d", m.name, m.dev.number)
}

// Free implements gpu.Memory.
func (m *memory) Free() error {
	p := m.dev.p
	return p.doAnyway(m.dev, fmt.Sprintf("Free of %v", m), func() error { return p.free(m) })
}

// free gives m back, as the host.
func (p *Platform) free(m *memory) error {
	if m.freed {
		return gpu.Invalid("it was freed before")
	}
	err := p.hostUses(gpu.All(m), write, fmt.Sprintf("the host frees %v", m))
	m.freed = true
	fillPoison(m.data, 0)
	m.dev.memories.remove(m)
	if m.pinned {
		p.pinnedUsed -= rounded(len(m.data))
	} else {
		p.used[m.dev.number] -= rounded(len(m.data))
	}
	return err
}

// Reading implements gpu.Pinned.
func (m *pinned) Reading(offset, n int) ([]byte, error) { return m.slice(offset, n, read, "reads") }

// Writing implements gpu.Pinned.
func (m *pinned) Writing(offset, n int) ([]byte, error) { return m.slice(offset, n, write, "writes") }

// pinned is pinned memory with the methods of the host.
type pinned struct{ *memory }

func (m *pinned) slice(offset, n int, how mode, does string) (b []byte, err error) {
	p := m.dev.p
	err = p.do(m.dev, fmt.Sprintf("the host %s bytes %d to %d of %v", does, offset, offset+n, m.memory), func() error {
		r := gpu.Part(m.memory, offset, n)
		if err := r.Check("the slice"); err != nil {
			return err
		}
		if m.freed {
			return gpu.Invalid("the memory was freed")
		}
		if err := p.hostUses(r, how, fmt.Sprintf("the host %s %v", does, r)); err != nil {
			return err
		}
		b = m.data[offset : offset+n : offset+n]
		return nil
	})
	return b, err
}

// hostUses remembers that the host uses r.
func (p *Platform) hostUses(r gpu.Region, how mode, what string) error {
	p.host.tick(0)
	return p.use(r, how, &access{0, p.host[0], what}, p.host)
}

// use records an access to r by an agent with clock c. A hazard is final.
func (p *Platform) use(r gpu.Region, how mode, a *access, c clock) error {
	m := bare(r.Memory)
	at, other := m.shadow.use(r, how, a, c)
	if at < 0 {
		return nil
	}
	h := &Hazard{Kind: Unwritten, Where: fmt.Sprintf("byte %d of %v", at, m), Second: a.what}
	if other != nil {
		h.Kind, h.First = Race, other.what
	}
	return p.report(h)
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
