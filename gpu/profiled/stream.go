package profiled

import (
	"slices"

	"aibox/gpu"
)

// stream implements gpu.Stream.
type stream struct {
	gpu.Stream
	dev      *device
	captured *graph // that operations go to
}

// graph implements gpu.Graph: a list of operations.
type graph struct {
	stream *stream // that it was captured in
	name   string
	steps  []step
	freed  bool
}

// step is an operation that can be enqueued again and again.
type step struct {
	operation
	bytes   int64 // that it may read and write
	enqueue func(gpu.Stream) error
}

// Device implements gpu.Stream.
func (s *stream) Device() gpu.Device { return s.dev }

// free is an error if the stream is being captured.
func (s *stream) free() error {
	if s.captured != nil {
		return gpu.Invalid("stream %q is being captured", s.Name())
	}
	return nil
}

// do enqueues a step, or makes it part of a graph.
func (s *stream) do(t step) error {
	if s.captured != nil {
		s.captured.steps = append(s.captured.steps, t)
		return nil
	}
	m, err := s.dev.begin(s.Stream, t.operation, t.bytes)
	if err != nil {
		return err
	}
	if err := t.enqueue(s.Stream); err != nil {
		return err
	}
	s.dev.end(s.Stream, m)
	return nil
}

// Copy implements gpu.Stream.
func (s *stream) Copy(dst, src gpu.Region) error {
	_, down := dst.Memory.(gpu.Pinned)
	_, up := src.Memory.(gpu.Pinned)
	o := operation{kind: copyDevice}
	switch {
	case up && down:
		o.kind = copyHost
	case up:
		o.kind = copyUp
	case down:
		o.kind = copyDown
	}
	return s.do(step{o, int64(dst.Bytes() + src.Bytes()), func(s gpu.Stream) error { return s.Copy(dst, src) }})
}

// Fill implements gpu.Stream.
func (s *stream) Fill(dst gpu.Region, word uint32) error {
	return s.do(step{operation{kind: fill}, int64(dst.Bytes()), func(s gpu.Stream) error { return s.Fill(dst, word) }})
}

// Launch implements gpu.Stream.
func (s *stream) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	if s.captured != nil {
		args = slices.Clone(args)
	}
	bytes := 0
	for _, a := range args {
		if a.IsRegion() {
			bytes += a.Region.Bytes()
		}
		if a.Kind == gpu.UpdateArg {
			bytes += a.Region.Bytes()
		}
	}
	return s.do(step{operation{kind: kernel, name: k.Name()}, int64(bytes), func(s gpu.Stream) error { return s.Launch(k, g, args...) }})
}

// Multiply implements gpu.Stream.
func (s *stream) Multiply(p gpu.Product) error {
	e := &p.Epilogue
	o := operation{kind: product, precision: p.Precision, transA: p.TransA, transB: p.TransB, m: p.M, n: p.N, k: p.K, epilogue: e.String(), rounds: p.Round}
	bytes := (p.M+p.N)*p.K*p.Precision.Bytes() + p.ResultBytes()*p.M*p.N + e.Bias.Bytes()
	return s.do(step{o, int64(bytes), func(s gpu.Stream) error { return s.Multiply(p) }})
}

// Record implements gpu.Stream.
func (s *stream) Record(e gpu.Event) error {
	if err := s.free(); err != nil {
		return err
	}
	return s.Stream.Record(e)
}

// Wait implements gpu.Stream.
func (s *stream) Wait(e gpu.Event) error {
	if err := s.free(); err != nil {
		return err
	}
	return s.Stream.Wait(e)
}

// Synchronize implements gpu.Stream.
func (s *stream) Synchronize() error {
	if err := s.free(); err != nil {
		return err
	}
	return s.Stream.Synchronize()
}

// Capture implements gpu.Stream. Operations are checked when the graph runs.
func (s *stream) Capture(name string, enqueue func() error) (gpu.Graph, error) {
	if err := s.free(); err != nil {
		return nil, err
	}
	g := &graph{stream: s, name: name}
	s.captured = g
	defer func() { s.captured = nil }()
	if err := enqueue(); err != nil {
		return nil, err
	}
	return g, nil
}

// Run implements gpu.Stream.
func (s *stream) Run(of gpu.Graph) error {
	if err := s.free(); err != nil {
		return err
	}
	g, ok := of.(*graph)
	switch {
	case !ok || g.stream != s:
		return gpu.Invalid("graph %q was captured in another stream", of.Name())
	case g.freed:
		return gpu.Invalid("graph %q was freed", g.name)
	}
	for _, t := range g.steps {
		if err := s.do(t); err != nil {
			return err
		}
	}
	return nil
}

// Name implements gpu.Graph.
func (g *graph) Name() string { return g.name }

// Free implements gpu.Graph.
func (g *graph) Free() error {
	if g.freed {
		return gpu.Invalid("graph %q was freed before", g.name)
	}
	g.freed = true
	return nil
}
