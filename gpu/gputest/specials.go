package gputest

import (
	"math"

	"aibox/gpu"
)

// square is the number of rows and columns of the matrices in these tests.
const square = 16

// special is memory with the matrices of a product, and with what an epilogue has.
type special struct {
	*rig
	s    gpu.Stream
	m    gpu.Memory
	size int // of each part, in bytes
}

func newSpecial(r *rig, s gpu.Stream) *special {
	x := &special{rig: r, s: s, size: 4 * square * square}
	x.m = r.alloc(s.Device(), "m", 5*x.size)
	r.must(s.Fill(gpu.All(x.m), 0))
	return x
}

func (x *special) free() {
	x.must(x.s.Synchronize())
	x.must(x.m.Free())
}

func (x *special) part(part, bytes int) gpu.Region { return gpu.Part(x.m, part*x.size, bytes) }

// product is C = A·B, and then ReLU, with A, B and C in the first three parts, and perhaps with a
// bias in another one.
func (x *special) product(bias int) gpu.Product {
	at := func(part int) gpu.Matrix { return gpu.Matrix{Memory: x.m, Offset: part * x.size, Stride: square} }
	p := gpu.Product{M: square, N: square, K: square, A: at(0), B: at(1), C: at(2), Epilogue: gpu.Epilogue{ReLU: true}}
	if bias > 0 {
		p.Epilogue.Bias = x.part(bias, 4*square)
	}
	return p
}

// testNaN: ReLU keeps NaN. Where the platform may differ, the log says what it does.
func testNaN(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	defer x.free()
	r.must(s.Fill(x.part(0, x.size), math.Float32bits(float32(math.NaN()))))
	p := x.product(0)
	if !must[bool](r)(s.Fuses(p)) {
		r.Log("NaN: the device cannot do this product with its epilogue")
		return
	}
	r.must(s.Multiply(p))
	y := get[float32](r, s, x.m, 2*x.size, 1)[0]
	if r.Logf("relu(NaN) = %v", y); y == y && (r.Exact || y != 0) {
		r.Errorf("relu(NaN) = %v", y)
	}
}

// testSameShape does products of one shape, of which Fuses must be asked once, with different regions.
func testSameShape(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	defer x.free()
	for part, v := range []float32{1, 1, 0, 1, -100} {
		r.must(s.Fill(x.part(part, x.size), math.Float32bits(v)))
	}
	r.refuses("a product that was not asked for", s.Multiply(x.product(3)), gpu.InvalidArgument)
	if !must[bool](r)(s.Fuses(x.product(3))) {
		r.Log("the device cannot do these products with their epilogues")
		return
	}
	for i, want := range []float32{square + 1, 0} {
		r.must(s.Multiply(x.product(3 + i)))
		equal(r, "y", get[float32](r, s, x.m, 2*x.size, square*square), fill(square*square, func(int) float32 { return want }))
	}
}

// testEpilogueRefusals makes calls that are wrong. They change nothing.
func testEpilogueRefusals(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	other := newSpecial(r, r.stream(r.open(1)[0], "other"))
	freed := r.alloc(s.Device(), "freed", 4*square)
	r.must(freed.Free())
	rounds := func(p *gpu.Product) { p.Precision, p.Round, p.Epilogue = gpu.BF16Product, true, gpu.Epilogue{} }
	for what, change := range map[string]func(p *gpu.Product, bias *gpu.Region){
		"a short bias":          func(_ *gpu.Product, bias *gpu.Region) { bias.Width -= 4 },
		"a long bias":           func(_ *gpu.Product, bias *gpu.Region) { bias.Width += 4 },
		"a bias in rows":        func(_ *gpu.Product, bias *gpu.Region) { bias.Width, bias.Rows, bias.Pitch = 4, square, 8 },
		"a bias at no number":   func(_ *gpu.Product, bias *gpu.Region) { bias.Offset += 2 },
		"a bias past the end":   func(_ *gpu.Product, bias *gpu.Region) { bias.Offset = 5*x.size - 4 },
		"a bias elsewhere":      func(_ *gpu.Product, bias *gpu.Region) { bias.Memory = other.m },
		"a bias that was freed": func(_ *gpu.Product, bias *gpu.Region) { *bias = gpu.All(freed) },
		"a bias in C":           func(p *gpu.Product, bias *gpu.Region) { bias.Offset = p.C.Offset },
		"rounding of float32":   func(p *gpu.Product, _ *gpu.Region) { rounds(p); p.Precision = gpu.Float32Product },
		"rounding of no sum":    func(p *gpu.Product, _ *gpu.Region) { rounds(p); p.K = 0 },
		"rounding to odd bytes": func(p *gpu.Product, _ *gpu.Region) { rounds(p); p.C.Offset++ },
		"rounding with a bias of float32": func(p *gpu.Product, bias *gpu.Region) {
			vector := *bias
			rounds(p)
			*bias = vector
		},
	} {
		p := x.product(3)
		must[bool](r)(s.Fuses(p))
		change(&p, &p.Epilogue.Bias)
		_, err := s.Fuses(p)
		r.refuses("Fuses of "+what, err, gpu.InvalidArgument)
		r.refuses(what, s.Multiply(p), gpu.InvalidArgument)
	}
	equal(r, "what was there", get[uint32](r, s, x.m, 0, 5*x.size/4), make([]uint32, 5*x.size/4))
	x.free()
}
