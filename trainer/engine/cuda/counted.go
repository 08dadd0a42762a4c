package cuda

import "aibox/gpu"

// counted is a stream that counts its operations; those of a graph count each time it runs.
type counted struct {
	gpu.Stream
	counters *counters
	captured *tally[int64] // of the graph being captured; nil: none
}

// countedGraph is a graph with the counts of one run.
type countedGraph struct {
	gpu.Graph
	tally tally[int64]
}

// uncounted returns the underlying stream, for a Group.
func uncounted(s gpu.Stream) gpu.Stream { return s.(*counted).Stream }

// count adds n to a counter unless err is set, and returns err.
func (s *counted) count(what int, n int64, err error) error {
	switch {
	case err != nil:
	case s.captured != nil:
		s.captured[what] += n
	default:
		s.counters.counts[what].Add(n)
	}
	return err
}

// Copy implements gpu.Stream. Copies within a device count as copies between devices: they are a
// device's own part of an exchange.
func (s *counted) Copy(dst, src gpu.Region) error {
	_, down := dst.Memory.(gpu.Pinned)
	_, up := src.Memory.(gpu.Pinned)
	what := between
	switch {
	case up:
		what = uploaded
	case down:
		what = downloaded
	}
	return s.count(what, int64(src.Bytes()), s.Stream.Copy(dst, src))
}

// Launch implements gpu.Stream.
func (s *counted) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	return s.count(launches, 1, s.Stream.Launch(k, g, args...))
}

// Multiply implements gpu.Stream.
func (s *counted) Multiply(p gpu.Product) error { return s.count(products, 1, s.Stream.Multiply(p)) }

// Capture implements gpu.Stream.
func (s *counted) Capture(name string, enqueue func() error) (gpu.Graph, error) {
	g := new(countedGraph)
	s.captured = &g.tally
	defer func() { s.captured = nil }()
	var err error
	if g.Graph, err = s.Stream.Capture(name, enqueue); err != nil {
		return nil, err
	}
	return g, nil
}

// Run implements gpu.Stream.
func (s *counted) Run(of gpu.Graph) error {
	g := of.(*countedGraph)
	if err := s.Stream.Run(g.Graph); err != nil {
		return err
	}
	for what, n := range g.tally {
		s.counters.counts[what].Add(n)
	}
	return nil
}
