package gputest

import (
	"math"

	"aibox/gpu"
)

// square is the number of columns of the matrices in these tests, and the most rows.
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
	x.m = r.alloc(s.Device(), "m", 8*x.size)
	r.must(s.Fill(gpu.All(x.m), 0))
	return x
}

func (x *special) free() {
	x.must(x.s.Synchronize())
	x.must(x.m.Free())
}

func (x *special) matrix(part int) gpu.Matrix {
	return gpu.Matrix{Memory: x.m, Offset: part * x.size, Stride: square}
}

func (x *special) part(part, bytes int) gpu.Region { return gpu.Part(x.m, part*x.size, bytes) }

// product is C = A·B with C in a part, and with A and B in the parts before.
func (x *special) product(rows, c int) gpu.Product {
	return gpu.Product{M: rows, N: square, K: square, A: x.matrix(c - 2), B: x.matrix(c - 1), C: x.matrix(c)}
}

// testSpecialValues: ReLU keeps NaN, and its derivative at NaN and at 0 is 0. Where the platform may differ, the log says what it does.
func testSpecialValues(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	inputs := []float32{1, 0, -1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))}
	rows := len(inputs)
	a := make([]float32, rows*square)
	for i, v := range inputs {
		a[i*square] = v
	}
	put(r, s, x.m, 0, a)
	// The first row of B is 1, and so is the first column of the backward A: all columns are as the first one of A.
	put(r, s, x.m, x.size, fill(square, func(int) float32 { return 1 }))
	p, back := x.product(rows, 2), x.product(rows, 5)
	put(r, s, x.m, 3*x.size, fill(rows*square, func(i int) float32 { return float32(1 - min(i%square, 1)) }))
	put(r, s, x.m, 4*x.size, fill(square, func(int) float32 { return 1 }))
	mask := x.part(6, gpu.MaskBytes(rows, square))
	p.Epilogue = gpu.Epilogue{ReLU: true, Mask: mask}
	back.Epilogue = gpu.Epilogue{DeriveMask: mask, Sums: x.part(7, 4*square)}
	defer x.free()
	if !must[bool](r)(s.Fuses(p)) || !must[bool](r)(s.Fuses(back)) {
		r.Log("special values: the device cannot do these products with their epilogues")
		return
	}
	r.must(s.Multiply(p))
	r.must(s.Multiply(back))
	y, dx := get[float32](r, s, x.m, 2*x.size, rows*square), get[float32](r, s, x.m, 5*x.size, rows*square)
	for i, v := range inputs {
		wantY, wantX := max(v, 0), float32(0)
		if v > 0 {
			wantX = 1
		}
		gotY, gotX := y[i*square], dx[i*square]
		nan := v != v && gotY != gotY
		switch {
		case gotX == wantX && (gotY == wantY || nan):
		case r.Exact, v == v && v != 0:
			r.Errorf("relu(%v) = %v, derivative %v; want %v and %v", v, gotY, gotX, wantY, wantX)
		default:
			r.Logf("special values: relu(%v) = %v, derivative %v; a kernel has %v and %v", v, gotY, gotX, wantY, wantX)
		}
	}
}

// testSameShape does products of one shape, of which Fuses was asked once, with different regions.
func testSameShape(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	defer x.free()
	for part, v := range []float32{1, 1, 0, 1, -100} {
		r.must(s.Fill(x.part(part, x.size), math.Float32bits(v)))
	}
	forward, backward := x.product(square, 2), x.product(square, 2)
	for i, want := range [][3]float32{{square + 1, square, square * square}, {0, 0, 0}} {
		mask := x.part(5+i, gpu.MaskBytes(square, square))
		forward.Epilogue = gpu.Epilogue{Bias: x.part(3+i, 4*square), ReLU: true, Mask: mask}
		backward.Epilogue = gpu.Epilogue{DeriveMask: mask, Sums: x.part(7, 4*square)}
		if i == 0 && (!must[bool](r)(s.Fuses(forward)) || !must[bool](r)(s.Fuses(backward))) {
			r.Log("the device cannot do these products with their epilogues")
			return
		}
		r.must(s.Multiply(forward))
		y := get[float32](r, s, x.m, 2*x.size, 1)
		r.must(s.Multiply(backward))
		equal(r, "y, dx, its sums", []float32{y[0], get[float32](r, s, x.m, 2*x.size, 1)[0], get[float32](r, s, x.m, 7*x.size, 1)[0]}, want[:])
	}
}

// testEpilogueRefusals makes calls that are wrong. They change nothing.
func testEpilogueRefusals(r *rig, s gpu.Stream) {
	x := newSpecial(r, s)
	other := newSpecial(r, r.stream(r.open(1)[0], "other"))
	freed := r.alloc(s.Device(), "freed", 4*square)
	r.must(freed.Free())
	maskBytes := gpu.MaskBytes(square, square)
	forward := func(e *gpu.Epilogue) {
		*e = gpu.Epilogue{Bias: x.part(3, 4*square), ReLU: true, Mask: x.part(4, maskBytes)}
	}
	backward := func(e *gpu.Epilogue) {
		*e = gpu.Epilogue{DeriveMask: x.part(5, maskBytes), Sums: x.part(6, 4*square)}
	}
	for _, c := range []struct {
		what   string
		base   func(*gpu.Epilogue)
		change func(p *gpu.Product, e *gpu.Epilogue)
	}{
		{"accumulate", forward, func(p *gpu.Product, _ *gpu.Epilogue) { p.Accumulate = true }},
		{"a mask without ReLU", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.ReLU = false }},
		{"sums without a mask", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.DeriveMask = gpu.Region{} }},
		{"both passes", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.ReLU = true }},
		{"both passes, with a bias", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias = x.part(3, 4*square) }},
		{"a short bias", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Width -= 4 }},
		{"a long bias", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Width += 4 }},
		{"a bias in rows", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Width, e.Bias.Rows, e.Bias.Pitch = 4, square, 8 }},
		{"a bias at no number", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Offset += 2 }},
		{"a bias past the end", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Offset = 8*x.size - 4 }},
		{"a bias elsewhere", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias.Memory = other.m }},
		{"a bias that was freed", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Bias = gpu.All(freed) }},
		{"a bias in C", forward, func(p *gpu.Product, e *gpu.Epilogue) { e.Bias.Offset = p.C.Offset }},
		{"a short mask", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Mask.Width -= 4 }},
		{"a mask that is not aligned", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Mask.Offset += 8 }},
		{"a mask in A", forward, func(p *gpu.Product, e *gpu.Epilogue) { e.Mask.Offset = p.A.Offset }},
		{"a mask in B", forward, func(p *gpu.Product, e *gpu.Epilogue) { e.Mask.Offset = p.B.Offset + x.size - 16 }},
		{"a mask in C", forward, func(p *gpu.Product, e *gpu.Epilogue) { e.Mask.Offset = p.C.Offset }},
		{"a mask in the bias", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Mask.Offset = e.Bias.Offset }},
		{"a mask elsewhere", forward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Mask.Memory = other.m }},
		{"a mask to read in C", backward, func(p *gpu.Product, e *gpu.Epilogue) { e.DeriveMask.Offset = p.C.Offset }},
		{"a mask of another size", backward, func(p *gpu.Product, _ *gpu.Epilogue) { p.M-- }},
		{"a mask to read elsewhere", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.DeriveMask.Memory = other.m }},
		{"sums in A", backward, func(p *gpu.Product, e *gpu.Epilogue) { e.Sums.Offset = p.A.Offset }},
		{"sums in the mask", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Sums.Offset = e.DeriveMask.Offset }},
		{"sums elsewhere", backward, func(_ *gpu.Product, e *gpu.Epilogue) { e.Sums.Memory = other.m }},
	} {
		p := x.product(square, 2)
		c.base(&p.Epilogue)
		must[bool](r)(s.Fuses(p))
		c.change(&p, &p.Epilogue)
		_, err := s.Fuses(p)
		r.refuses("Fuses of "+c.what, err, gpu.InvalidArgument)
		r.refuses(c.what, s.Multiply(p), gpu.InvalidArgument)
	}
	equal(r, "what was there", get[uint32](r, s, x.m, 0, 2*x.size), make([]uint32, 2*x.size))
	x.free()
}
