package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// elementwise are the functions of two or three slices with their definitions;
// d is the old element of the destination.
var elementwise = []struct {
	name   string
	run    func(dst, a, b []float32)
	define func(d, a, b float32) float32
}{
	{"Add", func(d, a, _ []float32) { Add(d, a) }, func(d, a, _ float32) float32 { return d + a }},
	{"Mul", Mul, func(_, a, b float32) float32 { return a * b }},
	{"MulThenAdd", func(d, a, b []float32) { MulThenAdd(d, a, b, d) }, func(d, a, b float32) float32 { return float32(a*b) + d }},
	{"Scale", func(d, _, _ []float32) { Scale(-0.3, d) }, func(d, _, _ float32) float32 { return -0.3 * d }},
	{"ScaleTo", func(d, a, _ []float32) { ScaleTo(d, 1.7, a) }, func(_, a, _ float32) float32 { return 1.7 * a }},
	{"Axpy", func(d, a, _ []float32) { Axpy(0.1, a, d) }, func(d, a, _ float32) float32 { return FMA(0.1, a, d) }},
	{"Relu", func(d, a, _ []float32) { Relu(d, a) }, func(_, a, _ float32) float32 {
		if a < 0 {
			return 0
		}
		return a
	}},
	{"ReluBackward", ReluBackward, func(_, a, b float32) float32 {
		if b > 0 {
			return a
		}
		return 0
	}},
	{"SigmoidBackward", SigmoidBackward, func(_, a, b float32) float32 { return float32(a * float32(b*float32(1-b))) }},
	{"TanhBackward", TanhBackward, func(_, a, b float32) float32 { return float32(a * FMA(-b, b, 1)) }},
}

func TestElementwise(t *testing.T) {
	r := seeded(t, 1)
	for _, e := range elementwise {
		for n := range 90 {
			// Start anywhere in a vector, and keep what lies around.
			o := r.IntN(9)
			a := anything(r, make([]float32, o+n))[o:]
			b := anything(r, make([]float32, o+n))[o:]
			dst := anything(r, make([]float32, o+n+3))
			want := slices.Clone(dst)
			for i := range n {
				want[o+i] = e.define(dst[o+i], a[i], b[i])
			}
			for _, name := range Levels() {
				atLevel(t, name, func() {
					got := slices.Clone(dst)
					e.run(got[o:o+n], a, b)
					wantSame(t, fmt.Sprintf("%s of %d at %s", e.name, n, name), want, got)
				})
			}
		}
	}
}

func TestElementwiseInPlace(t *testing.T) {
	r := seeded(t, 2)
	x := anything(r, make([]float32, 100))
	for _, name := range Levels() {
		atLevel(t, name, func() {
			want, got := slices.Clone(x), slices.Clone(x)
			Relu(want, x)
			Relu(got, got)
			wantSame(t, "Relu", want, got)
			got = slices.Clone(x)
			ReluBackward(want, x, x)
			ReluBackward(got, got, x)
			wantSame(t, "ReluBackward", want, got)
		})
	}
}

// reduce is the documented order of the reductions.
func reduce(n int, add func(lane float32, i int) float32) float32 {
	var l [16]float32
	for i := range n {
		l[i%16] = add(l[i%16], i)
	}
	var a [8]float32
	for i := range a {
		a[i] = l[i] + l[i+8]
	}
	b := [4]float32{a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]}
	return (b[0] + b[2]) + (b[1] + b[3])
}

func TestReductions(t *testing.T) {
	r := seeded(t, 3)
	for n := range 150 {
		for _, fill := range []func(*rand.Rand, []float32) []float32{ordinary, anything} {
			a, b := fill(r, make([]float32, n)), fill(r, make([]float32, n))
			sum := reduce(n, func(l float32, i int) float32 { return l + a[i] })
			dot := reduce(n, func(l float32, i int) float32 { return FMA(a[i], b[i], l) })
			for _, name := range Levels() {
				atLevel(t, name, func() {
					if got := Sum(a); !sameBits(got, sum) {
						t.Fatalf("Sum of %d at %s is %x, want %x", n, name, got, sum)
					}
					if got := Dot(a, b); !sameBits(got, dot) {
						t.Fatalf("Dot of %d at %s is %x, want %x", n, name, got, dot)
					}
				})
			}
		}
	}
}

func TestColSum(t *testing.T) {
	r := seeded(t, 4)
	defer SetThreads(0)
	for range 60 {
		m, n := r.IntN(60), r.IntN(200)
		if r.IntN(10) == 0 {
			m = 3000 // enough work for several threads
		}
		ldx := n + r.IntN(4)
		x := ordinary(r, make([]float32, m*ldx))
		before := ordinary(r, make([]float32, n))
		accumulate := r.IntN(2) == 0
		want := make([]float32, n)
		if accumulate {
			copy(want, before)
		}
		for i := range m {
			for j := range n {
				want[j] += x[i*ldx+j]
			}
		}
		for _, name := range Levels() {
			atLevel(t, name, func() {
				for threads := 1; threads <= 4; threads++ {
					SetThreads(threads)
					got := slices.Clone(before)
					ColSum(m, n, x, ldx, accumulate, got)
					wantSame(t, fmt.Sprintf("ColSum (%d, %d) at %s", m, n, name), want, got)
				}
			})
		}
	}
}

// The derivative that derive multiplies by is that of the
// activation, by central differences.
func TestDerivatives(t *testing.T) {
	r := seeded(t, 6)
	for act := ActivationNone; act <= ActivationTanh; act++ {
		n := 40_000 // several ranges
		x, grad := ordinary(r, make([]float32, n)), ordinary(r, make([]float32, n))
		apply := func(shift float64) []float32 {
			y := make([]float32, n)
			for i := range y {
				y[i] = float32(float64(x[i]) + shift)
			}
			activate(act, y)
			return y
		}
		const h = 1.0 / 64
		out, up, down := apply(0), apply(h), apply(-h)
		dst := make([]float32, n)
		derive(act, dst, grad, out)
		for i := range dst {
			if act == ActivationRelu && math.Abs(float64(x[i])) <= h {
				continue // the kink
			}
			want := float64(grad[i]) * (float64(up[i]) - float64(down[i])) / (2 * h)
			if math.Abs(float64(dst[i])-want) > 1e-3*(1+math.Abs(float64(grad[i]))) {
				t.Fatalf("%v: derivative at %g is %g, want %g", act, x[i], dst[i], want)
			}
		}
	}
}
