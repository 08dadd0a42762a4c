package profiled

import "aibox/gpu"

// Platform implements gpu.Platform, and gpu.Ranger as the platform that it measures does.
type Platform struct {
	gpu.Platform
	gpu.Ranger
	times *Times
}

// New returns a platform with the devices of p. The times of their operations are added to t.
func New(p gpu.Platform, t *Times) *Platform { return &Platform{p, gpu.RangerOf(p), t} }

// Open implements gpu.Platform.
func (p *Platform) Open(number int) (gpu.Device, error) {
	d, err := p.Platform.Open(number)
	if err != nil {
		return nil, err
	}
	return &device{Device: d, times: p.times}, nil
}

// Group implements gpu.Platform.
func (p *Platform) Group(devices []gpu.Device) (gpu.Group, error) {
	inner := make([]gpu.Device, len(devices))
	for i, d := range devices {
		if inner[i] = d; d != nil {
			if mine, ok := d.(*device); ok {
				inner[i] = mine.Device
			}
		}
	}
	g, err := p.Platform.Group(inner)
	if err != nil {
		return nil, err
	}
	return &group{g, make([]gpu.Stream, len(devices)), make([]*mark, len(devices))}, nil
}

// group implements gpu.Group.
type group struct {
	gpu.Group
	inner []gpu.Stream // of the latest sum
	marks []*mark
}

// AllReduce implements gpu.Group.
func (g *group) AllReduce(streams []gpu.Stream, arrays []gpu.Region) error {
	if len(streams) != len(g.inner) || len(arrays) != len(g.inner) {
		return g.Group.AllReduce(streams, arrays) // which refuses it
	}
	for i, s := range streams {
		mine, ok := s.(*stream)
		if !ok {
			return gpu.Invalid("stream %d is of another platform", i)
		}
		if err := mine.free(); err != nil {
			return err
		}
		g.inner[i] = mine.Stream
		var err error
		if g.marks[i], err = mine.dev.begin(mine.Stream, operation{kind: sum, m: arrays[i].Bytes() / 4}, int64(2*arrays[i].Bytes())); err != nil {
			return err
		}
	}
	if err := g.Group.AllReduce(g.inner, arrays); err != nil {
		return err
	}
	for i, s := range streams {
		s.(*stream).dev.end(s.(*stream).Stream, g.marks[i])
	}
	return nil
}
