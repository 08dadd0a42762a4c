//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"slices"

	"aibox/gpu"
)

// group implements gpu.Group.
type group struct {
	p       *platform
	devices []*device
	sum     summer
	mine    []*stream // of the latest AllReduce
	done    []*event  // behind the latest AllReduce, of each device
	pending bool      // it is not known that all devices have finished it
	ended   bool      // a device was closed or broke
}

// summer is the implementation of a group's all-reduce.
type summer interface {
	// enqueue enqueues the sum of arrays of equal length, at least 1, in the streams. On an error,
	// some operations may have been enqueued; refused says that none were.
	enqueue(streams []*stream, arrays []gpu.Region) (refused bool, err error)
	// end gives back what the summer has, if abort without waiting for what is at work.
	end(abort bool)
}

// Group implements gpu.Platform.
func (p *platform) Group(devices []gpu.Device) (gpu.Group, error) {
	g, err := p.group(devices)
	if err != nil {
		return nil, complete(err, -1, fmt.Sprintf("Group of %d devices", len(devices)))
	}
	return g, nil
}

func (p *platform) group(devices []gpu.Device) (*group, error) {
	g := &group{p: p}
	for i, d := range devices {
		mine, ok := d.(*device)
		switch {
		case !ok || mine.p != p || mine.closed:
			return nil, gpu.Invalid("device %d of the group is closed, or of another platform", i)
		case slices.Contains(g.devices, mine):
			return nil, gpu.Invalid("device %d is in the group twice", i)
		case mine.broken != nil:
			return nil, mine.broken
		}
		g.devices = append(g.devices, mine)
	}
	if len(g.devices) == 0 {
		return nil, gpu.Invalid("there are none")
	}
	var err error
	if g.sum, err = g.newSummer(); err != nil {
		return nil, err
	}
	for _, d := range g.devices {
		e, err := d.newEvent("AllReduce", "NewEvent")
		if err != nil {
			g.sum.end(true)
			return nil, err
		}
		g.done = append(g.done, e)
	}
	for _, d := range g.devices {
		d.groups = append(d.groups, g)
		for _, o := range g.devices {
			d.mayWaitFor(o)
		}
	}
	return g, nil
}

// newSummer chooses the implementation of the all-reduce. NCCL knows only primary contexts, of
// which a physical device has one.
func (g *group) newSummer() (summer, error) {
	for _, d := range g.devices {
		if !d.primary {
			return newPeers(g.devices)
		}
	}
	if len(g.devices) == 1 || nccl.load(g.p.driver) != nil {
		return newPeers(g.devices)
	}
	return newNCCL(g.devices)
}

// AllReduce implements gpu.Group.
func (g *group) AllReduce(streams []gpu.Stream, arrays []gpu.Region) error {
	err := g.allReduce(streams, arrays)
	return complete(err, g.devices[0].number, "AllReduce")
}

func (g *group) allReduce(streams []gpu.Stream, arrays []gpu.Region) error {
	mine, err := g.check(streams, arrays)
	if err != nil || arrays[0].Width == 0 {
		return err
	}
	refused, err := g.sum.enqueue(mine, arrays)
	g.pending = g.pending || !refused
	for i, s := range mine {
		if err == nil {
			err = s.record(g.done[i])
		}
	}
	if err != nil && !refused {
		// Some devices might wait for operations that will never be enqueued.
		for _, d := range g.devices {
			d.fail(gpu.LaunchFailed, fmt.Sprintf("AllReduce could not be enqueued on all devices: %v", err))
		}
	}
	return err
}

func (g *group) check(streams []gpu.Stream, arrays []gpu.Region) ([]*stream, error) {
	if len(streams) != len(g.devices) || len(arrays) != len(g.devices) {
		return nil, gpu.Invalid("%d streams and %d arrays for %d devices", len(streams), len(arrays), len(g.devices))
	}
	for i, d := range g.devices {
		if d.closed {
			return nil, gpu.Invalid("device %d of the group was closed", i)
		}
		if d.broken != nil {
			return nil, d.broken
		}
	}
	if g.ended {
		return nil, gpu.Invalid("the group has ended with one of its devices")
	}
	g.mine = g.mine[:0]
	for i, s := range streams {
		st, ok := s.(*stream)
		if !ok || st.dev != g.devices[i] {
			return nil, gpu.Invalid("stream %d is not of device %d of the group", i, i)
		}
		if st.capture != nil {
			return nil, gpu.Invalid("stream %d is being captured", i)
		}
		r := arrays[i]
		if _, err := st.local(fmt.Sprintf("array %d", i), r); err != nil {
			return nil, err
		}
		if r.Rows != 1 || r.Width != arrays[0].Width || (r.Width|r.Offset)%4 != 0 {
			return nil, gpu.Invalid("array %d is %v, array 0 is %v: want arrays of as many float32", i, r, arrays[0])
		}
		g.mine = append(g.mine, st)
	}
	return g.mine, nil
}

// settle checks whether all devices have finished the latest AllReduce and are not broken
// afterwards: only then have all contributed to the sum.
func (g *group) settle() {
	if !g.pending || g.ended {
		return
	}
	for i, d := range g.devices {
		if result(C.aibox_query(d.ctx, nil, g.done[i].handle)) == notReady {
			return
		}
	}
	for _, d := range g.devices {
		if d.look(); d.broken != nil {
			return
		}
	}
	g.pending = false
}

// breaks ends the group after one of its devices broke. If it is not known that all have finished
// the AllReduce, it breaks the others: they might wait for the broken one forever, or have sums
// without it.
func (g *group) breaks(broken *device) {
	if g.ended {
		return
	}
	g.ended = true
	g.sum.end(true)
	for _, d := range g.devices {
		if g.pending && !d.closed {
			d.failWith(broken.broken, "another device of the group failed")
		}
	}
}

// dissolve ends the group because one of its devices is being closed.
func (g *group) dissolve() {
	if !g.ended {
		g.ended = true
		for i, d := range g.devices {
			if d.broken == nil && !d.closed && g.done[i].recorded {
				_ = d.wait(nil, g.done[i].handle)
			}
		}
		g.sum.end(false)
	}
	for _, d := range g.devices {
		if i := slices.Index(d.groups, g); i >= 0 {
			d.groups = slices.Delete(d.groups, i, i+1)
		}
	}
}
