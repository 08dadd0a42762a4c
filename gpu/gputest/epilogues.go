package gputest

import (
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// testEpilogues compares products that have an epilogue, or are rounded to bfloat16, with products
// of float32 without one, after which the host does the same.
func testEpilogues(r *rig) {
	rng := testseed.Rand(r)
	d := r.open(1)[0]
	s := r.stream(d, "s")
	testSameShape(r, s) // the first product in this stream
	l := layers{rig: r, s: s, other: r.stream(d, "other"), rng: rng}
	trials := 36
	if r.Exact {
		trials = 12 // emulated devices run this with many seeds
	}
	for i := range trials {
		p := gpu.Product{Precision: gpu.Precision(i % 3), M: 1 + rng.IntN(40), N: 1 + rng.IntN(200), K: 1 + rng.IntN(60)}
		switch i % 12 {
		case 3, 11:
			p.M = 0
		case 7:
			p.K = 0
		}
		if l.even = i%2 == 0; l.even {
			p.M, p.N, p.K = (p.M+15)/16*16, (p.N+15)/16*16, (p.K+15)/16*16
		}
		l.test(p)
	}
	for p := gpu.Float32Product; p <= gpu.BF16Product && !r.Exact; p++ { // a size for which devices have other algorithms
		l.even = true
		l.test(gpu.Product{Precision: p, M: 300, N: 256, K: 32})
	}
	r.Logf("%d of %d products were done together with their epilogues", l.fused, l.tried)
	testNaN(r, s)
	testEpilogueRefusals(r, s)
}

// layers are tests of layers.
type layers struct {
	*rig
	s, other     gpu.Stream // other does nothing but say what it could do
	rng          *rand.Rand
	even         bool // sizes, strides and places are multiples of what devices like
	tried, fused int
}

// test does a product of a precision and sizes with an epilogue and, if it is of bfloat16, rounded
// without and with one.
func (l *layers) test(p gpu.Product) {
	p.TransA, p.TransB = l.rng.IntN(2) == 0, l.rng.IntN(2) == 0
	l.product(p, true).run()
	if p.Precision == gpu.BF16Product {
		p.Round = true
		l.product(p, false).run()
		l.product(p, true).run()
	}
}

// product puts a product into memory, perhaps with a random epilogue. C holds NaN, and a number
// between its rows.
func (l *layers) product(p gpu.Product, epilogue bool) *fusedProduct {
	f := &fusedProduct{layers: l, p: p, aligned: true, format: gpu.Float32Product}
	if p.Round {
		f.format = gpu.BF16Product
	}
	f.a, f.b, f.c = l.side(p.M, p.K, p.TransA), l.side(p.K, p.N, p.TransB), l.side(p.M, p.N, false)
	for i := range f.c.values {
		if f.c.values[i] = float32(math.NaN()); i%f.c.stride >= p.N {
			f.c.values[i] = gap
		}
	}
	f.p.A, f.p.B, f.p.C = f.a.load(l.rig, l.s, p.Precision), f.b.load(l.rig, l.s, p.Precision), f.c.load(l.rig, l.s, f.format)
	f.memories = []gpu.Memory{f.p.A.Memory, f.p.B.Memory, f.p.C.Memory}
	if !epilogue {
		return f
	}
	if f.p.Epilogue.ReLU = l.rng.IntN(4) > 0; l.rng.IntN(2) == 0 || !f.p.Epilogue.ReLU {
		f.addBias()
	}
	return f
}

// side is a random matrix.
func (l *layers) side(rows, columns int, transposed bool) side {
	m := randomSide(l.rng, rows, columns, transposed)
	if l.even {
		m.stride, m.offset = max(m.columns, 1)+16*l.rng.IntN(2), 64*l.rng.IntN(2)
		m = m.random(l.rng)
	}
	return m
}
