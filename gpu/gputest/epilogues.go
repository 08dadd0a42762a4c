package gputest

import (
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// testEpilogues compares products that have an epilogue with products without one, after which the host does the same. A
// forward product makes the mask of a backward one.
func testEpilogues(r *rig) {
	rng := testseed.Rand(r)
	d := r.open(1)[0]
	s := r.stream(d, "s")
	r.must(s.PrepareProducts())
	l := layers{rig: r, s: s, other: r.stream(d, "other"), rng: rng}
	trials := 36
	if r.Exact {
		trials = 12 // emulated devices run this with many seeds
	}
	for i := range trials {
		m, n, k := 1+rng.IntN(40), 1+rng.IntN(200), 1+rng.IntN(60)
		switch i % 12 {
		case 3:
			m = 0
		case 7:
			k = 0
		}
		l.precision, l.even = gpu.Precision(i%3), false
		if i%2 == 0 {
			l.even, m, n, k = true, (m+15)/16*16, (n+15)/16*16, (k+15)/16*16
		}
		l.test(m, n, k)
	}
	for p := gpu.Float32Product; p <= gpu.BF16Product && !r.Exact; p++ { // a size for which devices have other algorithms
		l.precision, l.even = p, true
		l.test(300, 256, 32)
	}
	r.Logf("%d of %d products were done together with their epilogues", l.fused, l.tried)
	testSameShape(r, s)
	testSpecialValues(r, s)
	testRounding(r, s, rng)
	testEpilogueRefusals(r, s)
}

// layers are tests of layers.
type layers struct {
	*rig
	s, other     gpu.Stream // other does nothing but say what it could do
	rng          *rand.Rand
	precision    gpu.Precision
	even         bool // sizes, strides and places are multiples of what devices like
	tried, fused int
}

// test takes a layer through its forward and its backward pass.
func (l *layers) test(m, n, k int) {
	coin := func() bool { return l.rng.IntN(2) == 0 }
	forward := l.product(m, n, k)
	e := &forward.p.Epilogue
	e.ReLU = m == 0 || l.rng.IntN(4) > 0
	if coin() || !e.ReLU {
		e.Bias = forward.vector("bias", fill(n, func(int) float32 { return float32(l.rng.NormFloat64()) }), 4)
	}
	masked := e.ReLU && (m == 0 || l.rng.IntN(4) > 0)
	if masked {
		ones := math.Float32frombits(math.MaxUint32)
		e.Mask = forward.vector("mask", fill(gpu.MaskBytes(m, n)/4, func(int) float32 { return ones }), 16)
	}
	y, ok := forward.run(func(x float32, _, j int) float32 {
		if forward.bias != nil {
			x += forward.bias[j]
		}
		if e.ReLU && x < 0 {
			return 0
		}
		return x
	})
	if ok && masked {
		backward := l.product(m, n, 16*(1+l.rng.IntN(4)))
		backward.p.Epilogue.DeriveMask = e.Mask
		if m == 0 || coin() {
			backward.p.Epilogue.Sums = backward.vector("sums", fill(n, func(int) float32 { return float32(math.NaN()) }), 4)
		}
		backward.run(func(x float32, i, j int) float32 {
			if y[i*forward.c.stride+j] > 0 {
				return x
			}
			return 0
		})
		backward.free()
	}
	forward.free()
}

// product is a random product, whose C holds NaN, and 12345 between its rows.
func (l *layers) product(m, n, k int) *fusedProduct {
	f := &fusedProduct{layers: l, aligned: true}
	f.p = gpu.Product{Precision: l.precision, TransA: l.rng.IntN(2) == 0, TransB: l.rng.IntN(2) == 0, M: m, N: n, K: k}
	f.a, f.b, f.c = l.side(m, k, f.p.TransA), l.side(k, n, f.p.TransB), l.side(m, n, false)
	for i := range f.c.values {
		if f.c.values[i] = float32(math.NaN()); i%f.c.stride >= n {
			f.c.values[i] = gap
		}
	}
	f.p.A, f.p.B, f.p.C = f.a.load(l.rig, l.s, l.precision), f.b.load(l.rig, l.s, l.precision), f.c.load(l.rig, l.s, gpu.Float32Product)
	f.memories = []gpu.Memory{f.p.A.Memory, f.p.B.Memory, f.p.C.Memory}
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
