package gputest

import (
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/internal/half"
	"aibox/internal/kernel"
)

// fusedProduct is a product that is to be done together with its epilogue, if it has one, or rounded.
type fusedProduct struct {
	*layers
	p        gpu.Product
	a, b, c  side
	format   gpu.Precision // of C and of the bias
	bias     []float32
	aligned  bool // the bias begins at a multiple of 16 bytes
	memories []gpu.Memory
}

const gap = 12288 // between the rows of C; bfloat16 has this number

// addBias puts a random bias into memory. Where sizes and places are not what devices like, it is
// sometimes not aligned.
func (f *fusedProduct) addBias() {
	v := side{rows: 1, columns: f.p.N, stride: f.p.N, offset: 16}
	if !f.even && f.rng.IntN(4) == 0 {
		v.offset += 4
		f.aligned = false
	}
	v = v.random(f.rng)
	m := v.load(f.rig, f.s, f.format)
	f.bias, f.memories = v.values, append(f.memories, m.Memory)
	f.p.Epilogue.Bias = gpu.Part(m.Memory, m.Offset, f.p.N*f.format.Bytes())
}

func (f *fusedProduct) String() string {
	return fmt.Sprintf("%v, transposed %v %v", &f.p, f.p.TransA, f.p.TransB)
}

// fuses tells whether the device can do the product together with its epilogue.
func (f *fusedProduct) fuses() bool {
	f.Helper()
	r := f.rig
	fuses := must[bool](r)(f.s.Fuses(f.p))
	for _, stream := range []gpu.Stream{f.s, f.other} {
		if again := must[bool](r)(stream.Fuses(f.p)); again != fuses {
			r.Fatalf("%v: fuses %v, and in stream %q %v", f, fuses, stream.Name(), again)
		}
	}
	if r.Fuses && f.aligned && (f.p.K > 0 || f.p.M == 0) && !fuses {
		r.Fatalf("%v: the device cannot do it", f)
	}
	if f.tried++; fuses {
		f.fused++
		return true
	}
	r.refuses(f.String()+" that the device cannot do", f.s.Multiply(f.p), gpu.InvalidArgument)
	r.Logf("%v, strides %d %d %d: the device cannot do it", f, f.a.stride, f.b.stride, f.c.stride)
	return false
}

// run does the product, unless the device cannot. It must be able to if there is no epilogue, and
// need not be asked.
func (f *fusedProduct) run() {
	f.Helper()
	r, s, epilogue := f.rig, f.s, f.p.Epilogue.Any()
	if !epilogue || f.fuses() {
		want := f.plain()
		r.must(s.Multiply(f.p))
		c := f.result()
		for k, got := range c {
			if i, j := k/f.c.stride, k%f.c.stride; j < f.p.N {
				f.check(i, j, got, want[k])
			} else if got != gap {
				r.Fatalf("%v: the gap behind row %d became %v", f, i, got)
			}
		}
		// Again, and in a graph, with the same bits.
		g := must[gpu.Graph](r)(s.Capture("epilogue", func() error { return s.Multiply(f.p) }))
		for _, again := range []func() error{func() error { return s.Multiply(f.p) }, func() error { return s.Run(g) }} {
			f.c.store(r, s, f.p.C.Memory, f.format)
			r.must(again())
			equal(r, f.String()+" again", fill(len(c), bitsOf(f.result())), fill(len(c), bitsOf(c)))
		}
		r.must(g.Free())
	}
	if !epilogue && !must[bool](r)(s.Fuses(f.p)) {
		r.Fatalf("%v: Fuses says that the device cannot do it", f)
	}
	for _, m := range f.memories {
		r.must(m.Free())
	}
}

// result is C as it lies in memory.
func (f *fusedProduct) result() []float32 {
	at, n := f.p.C, len(f.c.values)
	if f.format == gpu.Float32Product {
		return get[float32](f.rig, f.s, at.Memory, at.Offset, n)
	}
	words := get[uint16](f.rig, f.s, at.Memory, at.Offset, n)
	return fill(n, func(i int) float32 { return half.FromBFloat16(words[i]) })
}

// plain is C of the product without its epilogue, in float32.
func (f *fusedProduct) plain() []float32 {
	p := f.p
	p.Epilogue, p.Round, p.C = gpu.Epilogue{}, false, f.c.load(f.rig, f.s, gpu.Float32Product)
	f.must(f.s.Multiply(p))
	c := get[float32](f.rig, f.s, p.C.Memory, p.C.Offset, len(f.c.values))
	f.must(p.C.Memory.Free())
	return c
}

// check fails the test unless a number of C is what becomes of x, that of the product without an
// epilogue. Unless the platform is exact, sums may have had another order, and the product may have
// been rounded before the bias was added. A number that becomes bfloat16 changes by no more than
// half of the last of its 8 bits.
func (f *fusedProduct) check(i, j int, got, x float32) {
	f.Helper()
	slack := 0.0
	rounded := func() {
		if f.p.Round {
			slack += math.Abs(float64(x)) / 255
		}
	}
	for q := range f.p.K {
		slack += 1e-5 * math.Abs(f.a.at(i, q, f.p.TransA)*f.b.at(q, j, f.p.TransB))
	}
	if f.bias != nil {
		rounded()
		x += f.bias[j]
		slack += 1e-5 * math.Abs(float64(f.bias[j]))
	}
	rounded()
	if f.p.Epilogue.ReLU && x < 0 {
		x = 0
	}
	if f.p.Round && f.Exact {
		x = kernel.RoundBF16(x)
	}
	if math.Float32bits(got) != math.Float32bits(x) && (f.Exact || !(math.Abs(float64(got)-float64(x)) <= slack)) {
		f.Fatalf("%v: element %d, %d is %v, want %v", f, i, j, got, x)
	}
}

// bitsOf are the bits of values.
func bitsOf(values []float32) func(i int) uint32 {
	return func(i int) uint32 { return math.Float32bits(values[i]) }
}
