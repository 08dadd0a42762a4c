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
	return g, nil
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
				if bare(u.Memory).freed {
					return gpu.Invalid("%v was freed", bare(u.Memory))
				}
			}
		}
		for _, w := range g.steps {
			w.what = fmt.Sprintf("%s of graph %q", w.what, g.name)
			w.uses = append(w.uses[:len(w.uses):len(w.uses)], use{gpu.All(g.busy), write})
			if _, err := p.enqueue([]*stream{s}, w); err != nil {
				return err
			}
		}
		return nil
	})
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
