package gputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/half"
	"aibox/internal/testseed"
)

// testProducts compares products of random shapes with sums in float64. C holds NaN before.
func testProducts(r *rig) {
	rng := testseed.Rand(r)
	d := r.open(1)[0]
	s := r.stream(d, "s")
	for i := range 24 {
		testProduct(r, s, rng, i)
	}
}

// side is a random matrix with gaps between rows, as it lies in memory.
type side struct {
	rows, columns, stride int
	values                []float32
	offset                int // bytes before it, in its memory
}

func randomSide(rng *rand.Rand, rows, columns int, transposed bool) side {
	if transposed {
		rows, columns = columns, rows
	}
	m := side{rows: rows, columns: columns, stride: max(1, columns) + rng.IntN(4), offset: rng.IntN(5) * 4}
	return m.random(rng)
}

// random returns the matrix with random elements.
func (m side) random(rng *rand.Rand) side {
	m.values = fill(m.rows*m.stride, func(int) float32 { return half.FromBFloat16(half.BFloat16(float32(rng.NormFloat64()), 0)) })
	return m
}

// at returns an element, of the transpose if transposed.
func (m *side) at(i, j int, transposed bool) float64 {
	if transposed {
		i, j = j, i
	}
	return float64(m.values[i*m.stride+j])
}

// load puts the matrix into memory of its own.
func (m *side) load(r *rig, s gpu.Stream, p gpu.Precision) gpu.Matrix {
	memory := r.alloc(s.Device(), "side", m.offset+len(m.values)*p.Bytes())
	m.store(r, s, memory, p)
	return gpu.Matrix{Memory: memory, Offset: m.offset, Stride: m.stride}
}

// store puts the matrix into a memory.
func (m *side) store(r *rig, s gpu.Stream, memory gpu.Memory, p gpu.Precision) {
	if p == gpu.BF16Product {
		put(r, s, memory, m.offset, fill(len(m.values), func(i int) uint16 { return half.BFloat16(m.values[i], 0) }))
	} else {
		put(r, s, memory, m.offset, m.values)
	}
}

func testProduct(r *rig, s gpu.Stream, rng *rand.Rand, i int) {
	p := gpu.Product{
		Precision: gpu.Precision(i % 3), TransA: i/3%2 == 1, TransB: i/6%2 == 1,
		M: 1 + rng.IntN(40), N: 1 + rng.IntN(40), K: rng.IntN(60),
	}
	a, b, c := randomSide(rng, p.M, p.K, p.TransA), randomSide(rng, p.K, p.N, p.TransB), randomSide(rng, p.M, p.N, false)
	for k := range c.values {
		c.values[k] = float32(math.NaN())
		if k%c.stride >= c.columns {
			c.values[k] = 12345
		}
	}
	p.A, p.B, p.C = a.load(r, s, p.Precision), b.load(r, s, p.Precision), c.load(r, s, gpu.Float32Product)
	r.must(s.Multiply(p))
	got := get[float32](r, s, p.C.Memory, p.C.Offset, len(c.values))
	what := fmt.Sprintf("%v product %dx%dx%d, transposed %v %v", p.Precision, p.M, p.N, p.K, p.TransA, p.TransB)
	for k, v := range got {
		if k%c.stride >= c.columns {
			if v != 12345 {
				r.Fatalf("%s: the gap behind row %d became %v", what, k/c.stride, v)
			}
			continue
		}
		want, size := 0.0, 0.0
		for q := range p.K {
			v := a.at(k/c.stride, q, p.TransA) * b.at(q, k%c.stride, p.TransB)
			want += v
			size += math.Abs(v)
		}
		// The sides are bfloat16, which all precisions can hold: only sums are rounded.
		if !(math.Abs(float64(v)-want) <= size*1e-5) {
			r.Fatalf("%s: element %d, %d is %v, want %v", what, k/c.stride, k%c.stride, v, want)
		}
	}
	for _, m := range []gpu.Matrix{p.A, p.B, p.C} {
		r.must(m.Memory.Free())
	}
}
