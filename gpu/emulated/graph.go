package emulated

import (
	"fmt"

	"aibox/gpu"
)

// graph implements gpu.Graph.
type graph struct {
	stream *stream // that it was captured in
	name   string
	steps  []work
	after  [][]int // of each step: those that it waits for
	ends   []int   // the steps that no other one waits for
	busy   *memory // a byte that every run writes, so that Free is a race unless it comes after them
}

func (g *graph) Name() string { return g.name }

// Capture implements gpu.Stream.
func (s *stream) Capture(name string, enqueue func() error) (gpu.Graph, error) {
	p, what := s.dev.p, fmt.Sprintf("Capture of graph %q in %v", name, s)
	g := &graph{stream: s, name: name, busy: newMemory(s.dev, fmt.Sprintf("graph %q", name), 1, false)}
	err := p.do(s.dev, what, func() error {
		if s.capture != nil {
			return gpu.Invalid("the stream is being captured")
		}
		s.capture = g
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer func() { s.capture = nil }() // also if enqueue panics
	if err := enqueue(); err != nil {
		return nil, err
	}
	if err := p.do(s.dev, "end of "+what, func() error { return nil }); err != nil {
		return nil, err
	}
	g.order()
	return g, nil
}

// order determines which steps wait for which.
func (g *graph) order() {
	uses, awaited := make([][]gpu.Arg, len(g.steps)), make([]bool, len(g.steps))
	for i := range g.steps {
		uses[i] = g.steps[i].uses
	}
	g.after = gpu.Order(uses)
	for _, after := range g.after {
		for _, i := range after {
			awaited[i] = true
		}
	}
	for i := range awaited {
		if !awaited[i] {
			g.ends = append(g.ends, i)
		}
	}
}

// Run implements gpu.Stream.
func (s *stream) Run(of gpu.Graph) error {
	p := s.dev.p
	return p.do(s.dev, fmt.Sprintf("Run of graph %q in %v", of.Name(), s), func() error {
		g, ok := of.(*graph)
		switch {
		case !ok || g.stream != s:
			return gpu.Invalid("the graph was captured in another stream")
		case g.busy.freed:
			return gpu.Invalid("the graph was freed")
		case s.capture != nil:
			return gpu.Invalid("the stream is being captured")
		}
		for _, w := range g.steps {
			for _, u := range w.uses {
				if m := bare(u.Region.Memory); m.freed {
					return gpu.Invalid("%v was freed", m)
				}
			}
		}
		return s.runSteps(g)
	})
}

// runSteps enqueues the steps of a graph; each runs after those that it waits for. For the vector
// clocks the steps are a chain, which is harmless: conflicting steps are ordered anyway, and
// nothing compares the clocks of other pairs.
func (s *stream) runSteps(g *graph) error {
	front, made := s.last, make([]*operation, len(g.steps))
	pick := func(steps []int) []*operation {
		var picked []*operation
		for _, i := range steps {
			picked = append(picked, made[i])
		}
		return picked
	}
	for i, w := range g.steps {
		if s.last = front; len(g.after[i]) > 0 {
			s.last = pick(g.after[i])
		}
		w.what = fmt.Sprintf("%s of graph %q", w.what, g.name)
		w.uses = append(w.uses[:len(w.uses):len(w.uses)], gpu.Write(gpu.All(g.busy)))
		op, err := s.dev.p.enqueue([]*stream{s}, w)
		if err != nil {
			return err
		}
		made[i] = op
	}
	if len(made) > 0 {
		s.last = pick(g.ends)
	}
	return nil
}

// Free implements gpu.Graph.
func (g *graph) Free() error {
	p := g.stream.dev.p
	return p.doAnyway(g.stream.dev, fmt.Sprintf("Free of graph %q", g.name), func() error {
		if g.busy.freed {
			return gpu.Invalid("it was freed before")
		}
		g.busy.freed = true
		return p.hostUses(gpu.All(g.busy), write, fmt.Sprintf("the host frees graph %q", g.name))
	})
}
