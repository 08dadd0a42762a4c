package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
)

// replicated is the devices, each with a copy of all parameters.
type replicated struct {
	replicas []*replica
	counters []*counters // of the replicas; see Stats

	group   gpu.Group    // of the replicas; nil if there is only one
	streams []gpu.Stream // scratch, as all below: one per device
	arrays  []gpu.Region

	matrices []kernels.Matrix
	events   []gpu.Event
}

// join makes a group of several devices.
func (d *replicated) join(p gpu.Platform) (err error) {
	if len(d.replicas) == 1 {
		return nil
	}
	devices := make([]gpu.Device, len(d.replicas))
	for i, r := range d.replicas {
		devices[i] = r.dev
	}
	d.group, err = p.Group(devices)
	return err
}

// divide appends to parts each device's part of n examples.
func (d *replicated) divide(parts []part, n int) []part {
	devices := len(d.replicas)
	for i := range devices {
		lo, hi := n*i/devices, n*(i+1)/devices
		parts = append(parts, part{lo, hi - lo})
	}
	return parts
}
