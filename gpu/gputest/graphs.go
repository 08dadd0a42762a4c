package gputest

import (
	"errors"
	"math"

	"aibox/gpu"
)

// testGraphs captures a step and runs it several times, among other operations.
func testGraphs(r *rig) {
	both := r.open(2)
	d := both[0]
	s := r.stream(d, "s")
	const n = 64
	in, x, y := r.pinned(d, "in", 4*n), r.alloc(d, "x", 4*n), r.alloc(d, "y", 4*n)
	c := r.alloc(d, "c", 4*n*n)
	r.must(s.PrepareProducts())
	r.must(s.Fill(gpu.All(y), 0))
	g := must[gpu.Graph](r)(s.Capture("step", func() error {
		r.must(s.Copy(gpu.All(x), gpu.All(in)))
		r.must(s.Fill(gpu.Part(x, 0, 4), math.Float32bits(1)))
		r.step(s, y, x)
		return s.Multiply(gpu.Product{M: n, N: n, K: 1, A: gpu.Matrix{Memory: y, Stride: 1}, B: gpu.Matrix{Memory: x, Stride: n}, C: gpu.Matrix{Memory: c, Stride: n}})
	}))
	if g.Name() != "step" {
		r.Errorf("the graph is %q", g.Name())
	}
	equal(r, "y after the capture", get[float32](r, s, y, 0, n), make([]float32, n))
	sum := float32(0)
	for i := range 4 {
		set(r, in, 0, fill(n, func(int) float32 { return float32(10 * i) }))
		r.must(s.Run(g))
		sum += float32(10 * i)
		r.must(s.Synchronize())
	}
	got := get[float32](r, s, y, 0, n)
	equal(r, "y", got, fill(n, func(i int) float32 {
		if i == 0 {
			return 4
		}
		return sum
	}))
	equal(r, "c", get[float32](r, s, c, 4*n, n), fill(n, func(i int) float32 { return sum * map[bool]float32{true: 1, false: 30}[i == 0] }))
	r.refuses("a graph in another stream", r.stream(d, "t").Run(g), gpu.InvalidArgument)
	r.refuses("a graph on another device", r.stream(both[1], "u").Run(g), gpu.InvalidArgument)
	r.must(g.Free())
	r.refuses("a graph that was freed", s.Run(g), gpu.InvalidArgument)

	failed := errors.New("failed")
	if _, err := s.Capture("bad", func() error { return failed }); !errors.Is(err, failed) {
		r.Errorf("a capture that failed: %v", err)
	}
	r.step(s, y, x) // runs
	r.must(s.Synchronize())
}
