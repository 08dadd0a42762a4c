package emulated

import (
	"fmt"
	"slices"

	"aibox/gpu"
)

// group implements gpu.Group.
type group struct {
	p       *Platform
	devices []*device
}

// Group implements gpu.Platform.
func (p *Platform) Group(devices []gpu.Device) (gpu.Group, error) {
	g := &group{p: p}
	err := p.do(nil, fmt.Sprintf("Group of %d devices", len(devices)), func() error {
		for i, d := range devices {
			mine, ok := d.(*device)
			switch {
			case !ok || mine.p != p || mine.closed:
				return gpu.Invalid("device %d of the group is closed, or of another platform", i)
			case slices.Contains(g.devices, mine):
				return gpu.Invalid("device %d is in the group twice", i)
			case mine.broken != nil:
				return mine.tell()
			}
			g.devices = append(g.devices, mine)
		}
		if len(g.devices) == 0 {
			return gpu.Invalid("there are none")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// AllReduce implements gpu.Group. The sum is taken in the order of the group's devices.
func (g *group) AllReduce(streams []gpu.Stream, arrays []gpu.Region) error {
	const what = "AllReduce"
	return g.p.do(g.devices[0], what, func() error {
		if len(streams) != len(g.devices) || len(arrays) != len(g.devices) {
			return gpu.Invalid("%d streams and %d arrays for %d devices", len(streams), len(arrays), len(g.devices))
		}
		mine := make([]*stream, len(streams))
		w := work{what: what}
		values := make([][]float32, len(streams))
		for i, s := range streams {
			st, ok := s.(*stream)
			if !ok || st.dev != g.devices[i] {
				return gpu.Invalid("stream %d is not of device %d of the group", i, i)
			}
			if st.capture != nil {
				return gpu.Invalid("stream %d is being captured", i)
			}
			if st.dev.closed {
				return gpu.Invalid("device %d was closed", i)
			}
			if st.dev.broken != nil {
				return st.dev.tell()
			}
			r := arrays[i]
			if _, err := st.local(fmt.Sprintf("array %d", i), r); err != nil {
				return err
			}
			if r.Rows != 1 || r.Width != arrays[0].Width || (r.Width|r.Offset)%4 != 0 {
				return gpu.Invalid("array %d is %v, array 0 is %v: want arrays of as many float32", i, r, arrays[0])
			}
			if bare(r.Memory).freed {
				return gpu.Invalid("%v was freed", bare(r.Memory))
			}
			mine[i], values[i] = st, gpu.As[float32](within(r))
			w.uses = append(w.uses, gpu.Update(r))
		}
		w.run = func() error { sumUp(values); return nil }
		_, err := g.p.enqueue(mine, w)
		return err
	})
}

// sumUp replaces all arrays by their sum.
func sumUp(arrays [][]float32) {
	for i := range arrays[0] {
		sum := arrays[0][i]
		for _, a := range arrays[1:] {
			sum += a[i]
		}
		for _, a := range arrays {
			a[i] = sum
		}
	}
}
