package emulated

import (
	"fmt"
	"slices"

	"aibox/gpu"
)

// device is an open device.
type device struct {
	p        *Platform
	number   int
	streams  []*stream
	memories list[*memory]
	broken   *gpu.Error
	closed   bool
}

func (d *device) Number() int    { return d.number }
func (d *device) Info() gpu.Info { return d.p.o.Devices[d.number] }

// Alloc implements gpu.Device.
func (d *device) Alloc(name string, bytes int) (gpu.Memory, error) {
	m, err := d.alloc(name, bytes, false)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AllocPinned implements gpu.Device.
func (d *device) AllocPinned(name string, bytes int) (gpu.Pinned, error) {
	m, err := d.alloc(name, bytes, true)
	if err != nil {
		return nil, err
	}
	return &pinned{m}, nil
}

func (d *device) alloc(name string, bytes int, pinned bool) (m *memory, err error) {
	what := "memory"
	if pinned {
		what = "pinned memory"
	}
	err = d.p.do(d, fmt.Sprintf("allocation of %s %q", what, name), func() (err error) {
		m, err = d.take(name, bytes, pinned)
		return err
	})
	return m, err
}

// take is alloc within a call.
func (d *device) take(name string, bytes int, pinned bool) (*memory, error) {
	p := d.p
	used, total := &p.used[d.number], d.Info().MemoryBytes
	if pinned {
		used, total = &p.pinnedUsed, p.o.PinnedBytes
	}
	if bytes < 0 {
		return nil, gpu.Invalid("%d bytes", bytes)
	}
	if free := total - *used; rounded(bytes) > free && !(pinned && total == 0) {
		return nil, &gpu.Error{Kind: gpu.OutOfMemory, Device: d.number, Asked: int64(bytes), Free: free, Total: total}
	}
	*used += rounded(bytes)
	m := newMemory(d, name, bytes, pinned)
	d.memories.add(m)
	return m, nil
}

// FreeMemory implements gpu.Device.
func (d *device) FreeMemory() (free, total int64, err error) {
	err = d.p.do(d, "FreeMemory", func() error {
		total = d.Info().MemoryBytes
		free = total - d.p.used[d.number]
		return nil
	})
	return free, total, err
}

// NewStream implements gpu.Device.
func (d *device) NewStream(name string) (gpu.Stream, error) {
	s := &stream{dev: d, name: name}
	err := d.p.do(d, fmt.Sprintf("NewStream %q", name), func() error {
		s.agent = d.p.agents
		d.p.agents++
		d.streams = append(d.streams, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// NewEvent implements gpu.Device.
func (d *device) NewEvent(name string) (gpu.Event, error) {
	e := &event{dev: d, name: name}
	if err := d.p.do(d, fmt.Sprintf("NewEvent %q", name), func() error { return nil }); err != nil {
		return nil, err
	}
	return e, nil
}

// Synchronize implements gpu.Device.
func (d *device) Synchronize() error {
	return d.p.do(d, "Synchronize", d.finish)
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

// finish runs all operations of d.
func (d *device) finish() error {
	if err := d.uncaptured(); err != nil {
		return err
	}
	var last []*operation
	var known clock
	for _, s := range d.streams {
		last = append(last, s.last...)
		known.join(s.clock)
	}
	return d.p.wait(d, known, last...)
}

// Close implements gpu.Device.
func (d *device) Close() error {
	return d.p.doAnyway(d, "Close", func() error {
		if d.closed {
			return gpu.Invalid("the device was closed before")
		}
		if err := d.uncaptured(); err != nil {
			return err
		}
		err := d.finish()
		if _, ok := err.(*gpu.Error); ok {
			err = nil
		}
		for len(d.memories) > 0 {
			if e := d.p.free(d.memories[0]); err == nil {
				err = e
			}
		}
		d.closed = true
		d.p.open.remove(d)
		return err
	})
}

// anyBroken reports whether some device is broken.
func (p *Platform) anyBroken() bool {
	return slices.ContainsFunc(p.open, func(d *device) bool { return d.broken != nil })
}
