package cuda

import (
	"fmt"

	"aibox/gpu"
)

// Jobs of the same shape run the same operations on the same memory. So from the second one on,
// each segment and the update of parameters are graphs, which one call each enqueues.

// shape is all that the operations of a job depend on while no memory is reallocated.
type shape struct {
	x         *execution
	slot      int
	n         int
	weights   bool // examples have weights
	constants int
}

// mostShapes bounds the number of shapes with graphs. There are two slots, and usually few sizes of
// mini-batches.
const mostShapes = 32

// captured is the graphs of a shape.
type captured struct {
	graphs []gpu.Graph // by segment (the update is the last), then by device; nil: not captured yet
}

// captured returns the graphs for a job, or nil if its operations are to be enqueued one by one.
func (e *Engine) captured(j *job) *captured {
	s := shape{j.execution, j.slot, j.in.N, j.in.Weights != nil, len(e.constants)}
	c := e.shapes[s]
	if c == nil {
		if len(e.shapes) < mostShapes {
			e.shapes[s] = new(captured)
		}
		return nil
	}
	if c.graphs == nil {
		c.graphs = make([]gpu.Graph, (len(j.segments)+1)*len(e.replicas))
	}
	return c
}

// segment enqueues a segment of a job on all devices. The number behind the last segment is the
// update.
func (e *Engine) segment(j *job, number int) error {
	for d, r := range e.replicas {
		if j.captured == nil {
			if err := e.segmentOn(j, number, r, j.parts[d]); err != nil {
				return err
			}
			continue
		}
		g := &j.captured.graphs[number*len(e.replicas)+d]
		if *g == nil {
			if err := e.capture(g, j, number, d); err != nil {
				return err
			}
		}
		if err := r.compute.Run(*g); err != nil {
			return err
		}
	}
	return nil
}

// capture captures the graph of a segment on a device.
func (e *Engine) capture(g *gpu.Graph, j *job, number, device int) error {
	r := e.replicas[device]
	made, err := r.compute.Capture(fmt.Sprintf("segment %d", number), func() error { return e.segmentOn(j, number, r, j.parts[device]) })
	if err != nil {
		return err
	}
	*g = made
	return nil
}

// segmentOn enqueues the operations of a segment on one device.
func (e *Engine) segmentOn(j *job, number int, r *replica, p part) error {
	if number == len(j.segments) {
		if e.group != nil {
			if err := e.flagNotFinite(j, r, p); err != nil {
				return err
			}
		}
		return e.update(j, r, p)
	}
	s := &j.segments[number]
	for _, at := range s.pieces {
		if err := j.take(r, p, at); err != nil {
			return err
		}
	}
	err := r.kernels.FinishSums(r.compute, p.n, r.unfinished...)
	if r.unfinished = r.unfinished[:0]; err != nil {
		return err
	}
	switch {
	case s.probe:
		return e.writeProbe(j, r, p)
	case s.results && e.group == nil && j.prog.Training():
		return e.flagNotFinite(j, r, p)
	case number+1 == len(j.segments) && e.updatesEarly(j):
		return e.update(j, r, p)
	}
	return nil
}

// updatesEarly reports whether the update of parameters is part of the last segment. It is not if
// gradients must first be all-reduced, or if results come from the last segment: these must not
// wait for the update.
func (e *Engine) updatesEarly(j *job) bool {
	return e.group == nil && j.prog.Training() && !j.segments[len(j.segments)-1].results
}

// forget frees all graphs. REQUIRES: the devices do not run them.
func (e *Engine) forget() error {
	for _, c := range e.shapes {
		for _, g := range c.graphs {
			if g == nil {
				continue
			}
			if err := g.Free(); err != nil {
				return err
			}
		}
	}
	clear(e.shapes)
	return nil
}
