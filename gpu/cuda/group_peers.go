//go:build nvidia && linux && amd64

package cuda

import "aibox/gpu"

const addThreads = 256

// peers implements the all-reduce by copies between devices. Device j sums part j of the arrays, in
// the order of the devices, and copies the sum to all of them.
type peers struct {
	devices []*device
	ready   []*event // the streams have reached the AllReduce
	done    []*event // the parts are summed up
	add     []gpu.Kernel
	scratch []gpu.Memory // of each device: the sum, and the part of another device
	room    int          // bytes of each of the two
}

func newPeers(devices []*device) (summer, error) {
	g := &peers{devices: devices, scratch: make([]gpu.Memory, len(devices))}
	for _, d := range devices {
		m, err := d.Load(sumImage())
		if err != nil {
			return nil, err
		}
		k, err := m.Kernel("add")
		if err != nil {
			return nil, err
		}
		g.add = append(g.add, k)
		for _, events := range []*[]*event{&g.ready, &g.done} {
			e, err := d.newEvent("AllReduce", "NewEvent")
			if err != nil {
				return nil, err
			}
			*events = append(*events, e)
		}
	}
	return g, nil
}

// partAlignment is what parts of arrays are multiples of, so that their copies are fast.
const partAlignment = 256

// grow makes the scratch memories large enough for parts of that many bytes.
func (g *peers) grow(bytes int) error {
	if bytes <= g.room {
		return nil
	}
	fresh := make([]gpu.Memory, len(g.devices))
	for i, d := range g.devices {
		m, err := d.Alloc("AllReduce", 2*bytes)
		if err != nil {
			for _, m := range fresh[:i] {
				_ = m.Free()
			}
			return err
		}
		fresh[i] = m
	}
	g.free()
	g.scratch, g.room = fresh, bytes
	return nil
}

// free frees the scratch memories when nothing uses them any more.
func (g *peers) free() {
	for i, m := range g.scratch {
		d := g.devices[i]
		if m == nil || d.closed {
			continue
		}
		if g.done[i].recorded && d.broken == nil {
			_ = d.wait(nil, g.done[i].handle)
		}
		_ = m.Free()
		g.scratch[i] = nil
	}
}

func (g *peers) enqueue(streams []*stream, arrays []gpu.Region) (refused bool, err error) {
	n, bytes := len(streams), arrays[0].Width
	if n == 1 {
		return false, nil
	}
	part := ((bytes+n-1)/n + partAlignment - 1) / partAlignment * partAlignment
	if err := g.grow(part); err != nil {
		return true, err
	}
	for i, s := range streams {
		if g.done[i].recorded { // the latest sum may have been in another stream
			if err := s.waitFor(g.done[i]); err != nil {
				return false, err
			}
		}
		if err := s.record(g.ready[i]); err != nil {
			return false, err
		}
	}
	for j, s := range streams {
		if err := waitForAll(s, g.ready); err != nil {
			return false, err
		}
		lo, hi := min(j*part, bytes), min((j+1)*part, bytes)
		if err := g.sumPart(s, j, arrays, lo, hi-lo); err != nil {
			return false, err
		}
		if err := s.record(g.done[j]); err != nil {
			return false, err
		}
	}
	for _, s := range streams {
		if err := waitForAll(s, g.done); err != nil {
			return false, err
		}
	}
	return false, nil
}

func waitForAll(s *stream, events []*event) error {
	for _, e := range events {
		if e.dev == s.dev {
			continue
		}
		if err := s.waitFor(e); err != nil {
			return err
		}
		if e.dev.broken != nil { // then waitFor has ordered nothing
			return e.dev.broken
		}
	}
	return nil
}

// sumPart sums up bytes [lo, lo+n) of all arrays on device j.
func (g *peers) sumPart(s *stream, j int, arrays []gpu.Region, lo, n int) error {
	if n == 0 {
		return nil
	}
	at := func(i int) gpu.Region { return gpu.Part(arrays[i].Memory, arrays[i].Offset+lo, n) }
	sum, other := gpu.Part(g.scratch[j], 0, n), gpu.Part(g.scratch[j], g.room, n)
	if err := s.copy(sum, at(0)); err != nil {
		return err
	}
	for i := 1; i < len(arrays); i++ {
		from := at(i)
		if i != j {
			if err := s.copy(other, from); err != nil {
				return err
			}
			from = other
		}
		args := []gpu.Arg{gpu.Update(sum), gpu.Read(from), gpu.Int32(int32(n / 4))}
		if err := s.launch(g.add[j], gpu.Linear(n/4, addThreads), args); err != nil {
			return err
		}
	}
	for i := range arrays {
		if err := s.copy(at(i), sum); err != nil {
			return err
		}
	}
	return nil
}

func (g *peers) end(abort bool) {
	if !abort {
		g.free()
		return
	}
	for i, m := range g.scratch {
		// On devices that are not broken it ends with the device: it may be in use.
		if m != nil && g.devices[i].broken != nil {
			_ = m.Free()
		}
	}
}
