//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"aibox/gpu"
)

// While a stream is captured, its operations are collected. The driver captures them once all are
// known and have been assigned to lanes.

// operation is one of a graph.
type operation struct {
	what    string
	uses    []gpu.Arg
	enqueue func(*lane) error
}

// add adds an operation, which uses these regions, to the graph that is being captured.
func (g *graph) add(what string, uses []gpu.Arg, enqueue func(*lane) error) {
	g.operations = append(g.operations, operation{what, uses, enqueue})
	for _, u := range uses {
		if u.IsRegion() {
			g.memories[bare(u.Region.Memory)] = struct{}{}
		}
	}
}

// Capture implements gpu.Stream.
func (s *stream) Capture(name string, enqueue func() error) (gpu.Graph, error) {
	d, call := s.dev, fmt.Sprintf("Capture of graph %q", name)
	err := d.ready()
	if err == nil && s.capture != nil {
		err = gpu.Invalid("the stream is being captured")
	}
	if err == nil {
		err = s.openSides()
	}
	if err != nil {
		return nil, s.failed(call, err)
	}
	g := &graph{stream: s, name: name, memories: map[*memory]struct{}{}}
	if err := s.collect(g, enqueue); err != nil {
		return nil, err
	}
	if err := d.ready(); err != nil {
		return nil, s.failed("end of "+call, err)
	}
	if during, err := g.make(); err != nil {
		_ = d.on(func() error { g.free(); return nil })
		return nil, s.failed(during+call, err)
	}
	g.operations = nil
	d.graphs = append(d.graphs, g)
	return g, nil
}

// collect lets enqueue add operations to the graph.
func (s *stream) collect(g *graph, enqueue func() error) error {
	s.capture = g
	defer func() { s.capture = nil }() // also if enqueue panics
	return enqueue()
}

// make lets the driver capture the operations. On an error, during names the operation, or says
// that it was the end.
func (g *graph) make() (during string, err error) {
	s, d := g.stream, g.stream.dev
	if err := d.check(C.aibox_capture(d.ctx, s.handle)); err != nil {
		return "", err
	}
	if err = s.fork(); err == nil {
		during, err = g.enqueue()
	}
	if joined := s.join(); err == nil { // otherwise, too: lanes that are not joined are an error of their own
		err = joined
	}
	if err != nil {
		_ = C.aibox_captured(d.ctx, s.handle, nil)
		return during, err
	}
	return "end of ", d.check(C.aibox_captured(d.ctx, s.handle, &g.exec))
}

// fork makes all lanes start after the first one: a driver capture spreads to streams that wait for
// the captured one.
func (s *stream) fork() error {
	for i := 1; i < lanes; i++ {
		if err := s.link(&s.lane, s.at(i)); err != nil {
			return err
		}
	}
	return nil
}

// join makes the first lane end after all others.
func (s *stream) join() error {
	for i := 1; i < lanes; i++ {
		if err := s.link(s.at(i), &s.lane); err != nil {
			return err
		}
	}
	return nil
}

// link makes later operations of lane to wait for those in lane from.
func (s *stream) link(from, to *lane) error {
	if err := s.mark(0, from); err != nil {
		return err
	}
	return s.waitIn(to, 0)
}

// enqueue enqueues the operations in their lanes. On an error, during names the operation.
func (g *graph) enqueue() (during string, err error) {
	plan := g.schedule()
	marks := plan.marks()
	for _, i := range plan.order {
		o := &g.operations[i]
		if err := g.stream.put(o, g.stream.at(plan.lane[i]), plan.waits[i], marks, marks[i]); err != nil {
			return o.what + " in ", err
		}
	}
	return "", nil
}

// put enqueues an operation in a lane, after the operations that it waits for, whose marks are
// given. It gets the given mark itself, unless that is 0.
func (s *stream) put(o *operation, l *lane, waits, marks []int, mark int) error {
	for _, i := range waits {
		if err := s.waitIn(l, marks[i]); err != nil {
			return err
		}
	}
	if err := o.enqueue(l); err != nil || mark == 0 {
		return err
	}
	return s.mark(mark, l)
}

// schedule decides in which lane each operation is.
func (g *graph) schedule() schedule {
	uses, cost := make([][]gpu.Arg, len(g.operations)), make([]int, len(g.operations))
	for i := range g.operations {
		uses[i], cost[i] = g.operations[i].uses, startCost
		for _, u := range uses[i] {
			if u.IsRegion() {
				cost[i] += u.Region.Bytes()
			}
		}
	}
	if g.stream.dev.p.options.Chain {
		return chain(cost)
	}
	return choose(gpu.Order(uses), cost)
}

// mark records mark i at the end of a lane. Mark 0 is reserved for link.
func (s *stream) mark(i int, l *lane) error {
	d := s.dev
	for len(s.marks) <= i {
		if err := d.on(func() error {
			e, err := cu.MakeEvent(cu.DisableTiming)
			if err == nil {
				s.marks = append(s.marks, e)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return d.check(C.aibox_record(d.ctx, l.handle, C.CUevent(handle(&s.marks[i]))))
}

// waitIn makes a lane wait for mark i.
func (s *stream) waitIn(l *lane, i int) error {
	return s.dev.check(C.aibox_wait_event(s.dev.ctx, l.handle, C.CUevent(handle(&s.marks[i]))))
}
