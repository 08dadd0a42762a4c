package gputest

import (
	"fmt"
	"math"

	"aibox/gpu"
)

// fusedProduct is a product that is to be done together with its epilogue.
type fusedProduct struct {
	*layers
	p        gpu.Product
	a, b, c  side
	bias     []float32
	aligned  bool // what the epilogue has begins at multiples of 16 bytes
	memories []gpu.Memory
	guarded  []gpu.Region // what lies before and behind is 7
}

const (
	guardWords = 4
	guardWord  = 7
	gap        = 12345 // between the rows of C
)

// vector puts values into memory, between guards. Where they need no more than an alignment of 4 bytes, they have sometimes no more.
func (f *fusedProduct) vector(name string, values []float32, alignment int) gpu.Region {
	offset := 4 * guardWords
	if alignment == 4 && !f.even && f.rng.IntN(4) == 0 {
		offset += 4
		f.aligned = false
	}
	n := 4 * len(values)
	m := f.alloc(f.s.Device(), name, offset+n+4*guardWords)
	f.must(f.s.Fill(gpu.All(m), guardWord))
	put(f.rig, f.s, m, offset, values)
	f.memories = append(f.memories, m)
	region := gpu.Part(m, offset, n)
	f.guarded = append(f.guarded, region)
	if name == "bias" {
		f.bias = values
	}
	return region
}

func (f *fusedProduct) free() {
	for _, m := range f.memories {
		f.must(m.Free())
	}
}

func (f *fusedProduct) String() string {
	return fmt.Sprintf("%v, transposed %v %v", &f.p, f.p.TransA, f.p.TransB)
}

// run does the product, unless the device cannot, and returns C. finish is what the epilogue does with an element.
func (f *fusedProduct) run(finish func(x float32, i, j int) float32) (c []float32, ok bool) {
	f.Helper()
	r, s, e := f.rig, f.s, &f.p.Epilogue
	r.refuses(f.String()+" that was not asked for", s.Multiply(f.p), gpu.InvalidArgument)
	fuses := must[bool](r)(s.Fuses(f.p))
	f.tried++
	for _, stream := range []gpu.Stream{s, f.other} {
		if again := must[bool](r)(stream.Fuses(f.p)); again != fuses {
			r.Fatalf("%v: fuses %v, and in stream %q %v", f, fuses, stream.Name(), again)
		}
	}
	if r.Fuses && f.aligned && (f.p.K > 0 || f.p.M == 0) && !fuses {
		r.Fatalf("%v: the device cannot do it", f)
	}
	if !fuses {
		r.refuses(f.String()+" that the device cannot do", s.Multiply(f.p), gpu.InvalidArgument)
		if !r.Fuses {
			r.Logf("%v, strides %d %d %d: the device cannot do it", f, f.a.stride, f.b.stride, f.c.stride)
		}
		return nil, false
	}
	f.fused++
	plain, sizes := f.plain(), f.sizes()
	r.must(s.Multiply(f.p))
	c = get[float32](r, s, f.p.C.Memory, f.p.C.Offset, len(f.c.values))
	for k, v := range c {
		i, j := k/f.c.stride, k%f.c.stride
		want, slack := float32(gap), 0.0
		if j < f.p.N {
			want, slack = finish(plain[k], i, j), sizes[i*f.p.N+j]
		}
		r.near(fmt.Sprintf("%v: element %d, %d", f, i, j), v, want, slack)
	}
	f.checkSums(c)
	f.checkGuards()
	var sums []float32
	if e.Sums.Memory != nil {
		sums = get[float32](r, s, e.Sums.Memory, e.Sums.Offset, f.p.N)
	}
	// Again, and in a graph, with the same bits.
	g := must[gpu.Graph](r)(s.Capture("epilogue", func() error { return s.Multiply(f.p) }))
	for _, again := range []func() error{func() error { return s.Multiply(f.p) }, func() error { return s.Run(g) }} {
		put(r, s, f.p.C.Memory, f.p.C.Offset, f.c.values)
		r.must(again())
		equalBits(r, f.String()+" again", get[float32](r, s, f.p.C.Memory, f.p.C.Offset, len(c)), c)
		if sums != nil {
			equalBits(r, f.String()+" again, its sums", get[float32](r, s, e.Sums.Memory, e.Sums.Offset, f.p.N), sums)
		}
	}
	r.must(g.Free())
	return c, true
}

// plain is C of the product without its epilogue.
func (f *fusedProduct) plain() []float32 {
	p := f.p
	p.Epilogue = gpu.Epilogue{}
	p.C.Memory = f.alloc(f.s.Device(), "plain", p.C.Memory.Bytes())
	put(f.rig, f.s, p.C.Memory, p.C.Offset, f.c.values)
	f.must(f.s.Multiply(p))
	c := get[float32](f.rig, f.s, p.C.Memory, p.C.Offset, len(f.c.values))
	f.must(p.C.Memory.Free())
	return c
}

// sizes are for each element the sum of the magnitudes of what is added up.
func (f *fusedProduct) sizes() []float64 {
	return fill(f.p.M*f.p.N, func(at int) float64 {
		i, j := at/f.p.N, at%f.p.N
		size := 0.0
		for q := range f.p.K {
			size += math.Abs(f.a.at(i, q, f.p.TransA) * f.b.at(q, j, f.p.TransB))
		}
		if f.bias != nil {
			size += math.Abs(float64(f.bias[j]))
		}
		return size
	})
}

// checkSums compares the sums of columns with those of c.
func (f *fusedProduct) checkSums(c []float32) {
	f.Helper()
	r := f.p.Epilogue.Sums
	if r.Memory == nil {
		return
	}
	for j, got := range get[float32](f.rig, f.s, r.Memory, r.Offset, f.p.N) {
		sum, size := 0.0, 0.0
		for i := range f.p.M {
			sum += float64(c[i*f.c.stride+j])
			size += math.Abs(float64(c[i*f.c.stride+j]))
		}
		f.near(fmt.Sprintf("%v: sum of column %d", f, j), got, float32(sum), size)
	}
}

// checkGuards looks at what lies beside the regions of the epilogue.
func (f *fusedProduct) checkGuards() {
	f.Helper()
	for _, g := range f.guarded {
		words := get[uint32](f.rig, f.s, g.Memory, 0, g.Memory.Bytes()/4)
		for i, w := range words {
			if (i < g.Offset/4 || i >= (g.Offset+g.Width)/4) && w != guardWord {
				f.Fatalf("%v: word %d beside %v was written", f, i, g)
			}
		}
	}
}

// near fails the test unless a number is what it should be, but for the rounding of a sum of numbers whose magnitudes add up to size.
func (r *rig) near(what string, got, want float32, size float64) {
	r.Helper()
	if math.Float32bits(got) == math.Float32bits(want) {
		return
	}
	if r.Exact || !(math.Abs(float64(got)-float64(want)) <= size*1e-5) {
		r.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func equalBits(r *rig, what string, got, want []float32) {
	r.Helper()
	bits := func(v []float32) []uint32 { return fill(len(v), func(i int) uint32 { return math.Float32bits(v[i]) }) }
	equal(r, what, bits(got), bits(want))
}
