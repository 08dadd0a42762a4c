package gputest

import (
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/testseed"
)

func testKernels(r *rig) {
	rng := testseed.Rand(r)
	d := r.open(1)[0]
	s := r.stream(d, "s")
	testPlaces(r, s)
	testArguments(r, s)
	for range 5 {
		testGather(r, s, rng)
	}

	const n = 1000 // no multiple of the block
	x, y := r.alloc(d, "x", 4*n), r.alloc(d, "y", 4*n)
	put(r, s, x, 0, fill(n, func(i int) float32 { return float32(i) }))
	put(r, s, y, 0, fill(n, func(i int) float32 { return 1 }))
	affine := r.kernel(d, kernelAffine)
	for range 3 {
		r.must(s.Launch(affine, gpu.Linear(n, 128), gpu.Update(gpu.All(y)), gpu.Read(gpu.All(x)), gpu.Float32(2), gpu.Int32(n)))
	}
	equal(r, "y after three launches", get[float32](r, s, y, 0, n), fill(n, func(i int) float32 { return float32(6*i + 1) }))
}

// testPlaces counts the threads of grids and blocks of all dimensions.
func testPlaces(r *rig, s gpu.Stream) {
	place := r.kernel(s.Device(), kernelPlace)
	for _, g := range []gpu.Geometry{
		{}, gpu.Linear(1, 32), gpu.Linear(100, 32), {Grid: gpu.Dim{X: 2, Y: 3, Z: 4}, Block: gpu.Dim{X: 4, Y: 2, Z: 3}, SharedBytes: 1024},
		{Grid: gpu.Dim{Y: 2}, Block: gpu.Dim{X: 1024}},
	} {
		n := g.Grid.Count() * g.Block.Count()
		out := r.alloc(s.Device(), "out", 4*n)
		r.must(s.Launch(place, g, gpu.Write(gpu.All(out))))
		equal(r, "threads", get[int32](r, s, out, 0, n), fill(n, func(i int) int32 { return int32(i) }))
		r.must(out.Free())
	}
}

func testArguments(r *rig, s gpu.Stream) {
	out := r.alloc(s.Device(), "out", 16)
	arguments := r.kernel(s.Device(), kernelArguments)
	const a, b, c = -5, -1 << 40, -0.25
	r.must(s.Launch(arguments, gpu.Linear(1, 1), gpu.Write(gpu.All(out)), gpu.Int32(a), gpu.Int64(b), gpu.Float32(c)))
	equal(r, "arguments", get[uint32](r, s, out, 0, 4), []uint32{1<<32 + a, 0, 1<<32 - 1<<8, math.Float32bits(c)})
}

// testGather gathers random rows of a table into columns of a matrix, whose other columns
// must stay as they are.
func testGather(r *rig, s gpu.Stream, rng *rand.Rand) {
	dim, rows, n := 1+rng.IntN(20), 1+rng.IntN(50), 1+rng.IntN(50)
	pitch, column := dim+rng.IntN(10), 0
	if pitch > dim {
		column = rng.IntN(pitch - dim)
	}
	d := s.Device()
	table, index, out := r.alloc(d, "table", 4*rows*dim), r.alloc(d, "index", 4*n), r.alloc(d, "out", 4*n*pitch)
	values := fill(rows*dim, func(int) float32 { return rng.Float32() })
	rowOf := fill(n, func(int) int32 { return int32(rng.IntN(rows)) })
	put(r, s, table, 0, values)
	put(r, s, index, 0, rowOf)
	r.must(s.Fill(gpu.All(out), math.Float32bits(-1)))
	to := gpu.Region{Memory: out, Offset: 4 * column, Width: 4 * dim, Rows: n, Pitch: 4 * pitch}
	r.must(s.Launch(r.kernel(d, kernelGather), gpu.Linear(n, 32), gpu.Write(to), gpu.Read(gpu.All(table)), gpu.Read(gpu.All(index)),
		gpu.Int32(int32(dim)), gpu.Int32(int32(pitch)), gpu.Int32(int32(n))))
	want := fill(n*pitch, func(i int) float32 {
		if c := i%pitch - column; c >= 0 && c < dim {
			return values[int(rowOf[i/pitch])*dim+c]
		}
		return -1
	})
	equal(r, "gathered rows", get[float32](r, s, out, 0, n*pitch), want)
}

// testRefusals makes calls that are wrong. They change nothing.
func testRefusals(r *rig) {
	devices := r.open(2)
	s, t := r.stream(devices[0], "s"), r.stream(devices[1], "t")
	m, o := r.alloc(devices[0], "m", 64), r.alloc(devices[1], "o", 64)
	p := r.pinned(devices[0], "p", 64)
	freed := r.alloc(devices[0], "freed", 64)
	r.must(freed.Free())
	r.must(s.Fill(gpu.All(m), 42))
	affine, trap := r.kernel(devices[0], kernelAffine), r.kernel(devices[0], kernelTrap)
	launch := func(args ...gpu.Arg) error { return s.Launch(affine, gpu.Linear(4, 4), args...) }
	a, n := gpu.Float32(1), gpu.Int32(4)
	low, high := gpu.Part(m, 0, 16), gpu.Part(m, 16, 16)
	product := gpu.Product{M: 1, N: 1, K: 1, A: gpu.Matrix{Memory: m, Stride: 1}, B: gpu.Matrix{Memory: m, Offset: 4, Stride: 1}, C: gpu.Matrix{Memory: m, Offset: 8, Stride: 1}}
	changed := func(change func(p *gpu.Product)) error { q := product; change(&q); return s.Multiply(q) }
	capture := func(enqueue func() error) error { _, err := s.Capture("g", enqueue); return err }
	never := r.event(devices[0], "never")
	_, noImage := devices[0].Load(gpu.Image{Name: "no such image"})
	_, noKernel := must[gpu.Module](r)(devices[0].Load(r.Image)).Kernel("no such kernel")
	_, asked := never.Done()
	_, past := p.Reading(60, 8)
	_, twice := r.Platform.Group([]gpu.Device{devices[0], devices[0]})
	_, none := r.Platform.Group(nil)
	group := must[gpu.Group](r)(r.Platform.Group(devices))
	for _, c := range []struct {
		what string
		err  error
	}{
		{"past the end", s.Fill(gpu.Part(m, 32, 36), 0)},
		{"negative", s.Fill(gpu.Part(m, -4, 8), 0)},
		{"huge", s.Fill(gpu.Region{Memory: m, Width: 4, Rows: 1 << 62, Pitch: 1 << 62}, 0)},
		{"rows overlap", s.Fill(gpu.Region{Memory: m, Width: 8, Rows: 2, Pitch: 4}, 0)},
		{"no whole words", s.Fill(gpu.Part(m, 2, 4), 0)},
		{"fill of pinned memory", s.Fill(gpu.All(p), 0)},
		{"fill of a peer", s.Fill(gpu.All(o), 0)},
		{"no memory", s.Fill(gpu.Region{Width: 4, Rows: 1}, 0)},
		{"freed memory", s.Fill(gpu.All(freed), 0)},
		{"sizes differ", s.Copy(low, gpu.All(p))},
		{"freed source", s.Copy(gpu.All(m), gpu.All(freed))},
		{"too few arguments", launch(gpu.Update(low), gpu.Read(high), a)},
		{"wrong type", launch(gpu.Update(low), gpu.Read(high), gpu.Int32(1), n)},
		{"wrong use", launch(gpu.Read(low), gpu.Read(high), a, n)},
		{"overlapping arguments", launch(gpu.Update(low), gpu.Read(gpu.Part(m, 12, 16)), a, n)},
		{"argument of a peer", launch(gpu.Update(low), gpu.Read(gpu.All(o)), a, n)},
		{"pinned argument", launch(gpu.Update(low), gpu.Read(gpu.All(p)), a, n)},
		{"freed argument", launch(gpu.Update(low), gpu.Read(gpu.All(freed)), a, n)},
		{"kernel of a peer", t.Launch(trap, gpu.Linear(1, 1))},
		{"too many threads", s.Launch(trap, gpu.Linear(1025, 1025))},
		{"too many threads in all", s.Launch(trap, gpu.Geometry{Block: gpu.Dim{X: 64, Y: 64}})},
		{"too many blocks", s.Launch(trap, gpu.Geometry{Grid: gpu.Dim{Y: 65536}})},
		{"too much shared memory", s.Launch(trap, gpu.Geometry{SharedBytes: 1 << 30})},
		{"no image", noImage},
		{"no kernel", noKernel},
		{"C overlaps A", changed(func(p *gpu.Product) { p.C.Offset = 0 })},
		{"stride", changed(func(p *gpu.Product) { p.M, p.N, p.C.Stride = 2, 2, 1; p.B.Stride, p.A.Offset = 2, 32 })},
		{"product past the end", changed(func(p *gpu.Product) { p.K, p.A.Stride = 100, 100 })},
		{"product at no element", changed(func(p *gpu.Product) { p.B.Offset = 5 })},
		{"product of a peer", changed(func(p *gpu.Product) { p.A.Memory = o })},
		{"precision", changed(func(p *gpu.Product) { p.Precision = 9 })},
		{"negative product", changed(func(p *gpu.Product) { p.M = -1 })},
		{"wait for what was never recorded", t.Wait(never)},
		{"event that was never recorded", asked},
		{"event of a peer", t.Record(never)},
		{"past the end of pinned memory", past},
		{"wait in a capture", capture(s.Synchronize)},
		{"record in a capture", capture(func() error { return s.Record(never) })},
		{"sum in a capture", capture(func() error { return group.AllReduce([]gpu.Stream{s, t}, []gpu.Region{gpu.All(m), gpu.All(o)}) })},
		{"wait for the device in a capture", capture(devices[0].Synchronize)},
		{"close of the device in a capture", capture(devices[0].Close)},
		{"capture in a capture", capture(func() error { return capture(func() error { return nil }) })},
		{"a device twice in a group", twice},
		{"an empty group", none},
		{"streams of others", group.AllReduce([]gpu.Stream{t, s}, []gpu.Region{gpu.All(m), gpu.All(o)})},
		{"arrays of others", group.AllReduce([]gpu.Stream{s, t}, []gpu.Region{gpu.All(o), gpu.All(m)})},
		{"arrays of different size", group.AllReduce([]gpu.Stream{s, t}, []gpu.Region{low, gpu.All(o)})},
		{"one array", group.AllReduce([]gpu.Stream{s, t}, []gpu.Region{low})},
	} {
		r.refuses(c.what, c.err, gpu.InvalidArgument)
	}
	equal(r, "what was there", get[uint32](r, s, m, 0, 16), fill(16, func(int) uint32 { return 42 }))
	r.must(t.Synchronize())
}
