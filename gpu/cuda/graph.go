//go:build nvidia && linux && amd64

package cuda

// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"aibox/gpu"
)

// graph implements gpu.Graph.
type graph struct {
	stream     *stream // that it was captured in
	name       string
	operations []operation // until the driver has captured them
	exec       C.CUgraphExec
	memories   map[*memory]struct{} // that its operations use
	held       []unsafe.Pointer     // of copies between pinned memories
	freed      bool
}

func (g *graph) Name() string { return g.name }

// Run implements gpu.Stream.
func (s *stream) Run(of gpu.Graph) error {
	err := s.run(of)
	if err == nil {
		return nil
	}
	return s.failed(fmt.Sprintf("Run of graph %q", of.Name()), err)
}

func (s *stream) run(of gpu.Graph) error {
	if err := s.dev.ready(); err != nil {
		return err
	}
	g, ok := of.(*graph)
	switch {
	case !ok || g.stream != s:
		return gpu.Invalid("the graph was captured in another stream")
	case g.freed:
		return gpu.Invalid("the graph was freed")
	case s.capture != nil:
		return gpu.Invalid("the stream is being captured")
	}
	for m := range g.memories {
		if m.freed {
			return gpu.Invalid("%v was freed", m)
		}
	}
	return s.dev.check(C.aibox_run(s.dev.ctx, s.handle, g.exec))
}

// Free implements gpu.Graph.
func (g *graph) Free() error {
	d := g.stream.dev
	if g.freed {
		return complete(gpu.Invalid("it was freed before"), d.number, fmt.Sprintf("Free of graph %q", g.name))
	}
	_ = d.on(func() error { g.free(); return nil })
	if i := slices.Index(d.graphs, g); i >= 0 {
		d.graphs = slices.Delete(d.graphs, i, i+1)
	}
	return nil
}

// free gives back what g takes. The context is that of the thread.
func (g *graph) free() {
	g.freed = true
	if g.stream.dev.broken != nil { // it ends with the context
		return
	}
	if g.exec != nil {
		C.aibox_free_graph(g.stream.dev.ctx, g.exec)
	}
	for _, h := range g.held {
		C.free(h)
	}
}
