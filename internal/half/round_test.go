package half

import (
	"math"
	"math/rand/v2"
	"testing"
)

// format is one of the two for tests that hold for both.
type format struct {
	name    string
	round   func(float32, uint32) uint16
	widen   func(uint16) float32
	pack    func(dst, src []float32, random uint64)
	unpack  func(dst, src []float32)
	inf     uint16
	largest float64
	dropped uint // bits that rounding a normal number drops
}

var formats = []format{
	{"float16", Float16, FromFloat16, PackFloat16, UnpackFloat16, inf16, 65504, 13},
	{"bfloat16", BFloat16, FromBFloat16, PackBFloat16, UnpackBFloat16, infBF16, math.Ldexp(255, 120), 16},
}

// meaning is the number that a pattern stands for, from the definition of the
// format.
func (f *format) meaning(h uint16) float64 {
	fraction, bias := 10, 15
	if f.name == "bfloat16" {
		fraction, bias = 7, 127
	}
	m := int(h) & (1<<fraction - 1)
	e := int(h&0x7fff) >> fraction
	sign := 1 - 2*float64(h>>15)
	switch {
	case h&0x7fff > f.inf:
		return math.NaN()
	case h&0x7fff == f.inf:
		return math.Inf(int(sign))
	case e == 0:
		return sign * math.Ldexp(float64(m), 1-bias-fraction)
	}
	return sign * math.Ldexp(float64(m+1<<fraction), e-bias-fraction)
}

// TestEveryPattern: widening is the definition, and what a format has is rounded
// to itself.
func TestEveryPattern(t *testing.T) {
	for _, f := range formats {
		for i := range 1 << 16 {
			h := uint16(i)
			x, want := f.widen(h), f.meaning(h)
			if math.IsNaN(want) {
				if !math.IsNaN(float64(x)) {
					t.Fatalf("%s %#04x widens to %v, want NaN", f.name, h, x)
				}
				if got := f.round(x, ^uint32(0)); !math.IsNaN(f.meaning(got)) || got>>15 != h>>15 {
					t.Fatalf("%s: NaN %#04x is rounded to %#04x", f.name, h, got)
				}
				continue
			}
			if float64(x) != want || math.Signbit(float64(x)) != math.Signbit(want) {
				t.Fatalf("%s %#04x widens to %v, want %v", f.name, h, x, want)
			}
			for _, random := range []uint32{0, 1, 1 << 31, ^uint32(0)} {
				if got := f.round(x, random); got != h {
					t.Fatalf("%s: %v = %#04x is rounded to %#04x with %#x", f.name, x, h, got, random)
				}
			}
		}
	}
}

// numbers are float32 numbers of all magnitudes, finite.
func numbers(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := []float32{0, math.SmallestNonzeroFloat32, math.MaxFloat32, 1 - 1.0/(1<<24), 0x1.fffffep-15, 0x1p-14, 0x1.8p-25, 65503.99, 65519.99, 65520, 1e-40}
	for len(out) < n {
		x := math.Float32frombits(rng.Uint32())
		if len(out)%2 == 0 { // where weights are
			x = float32(rng.NormFloat64()) * float32(math.Ldexp(1, -rng.IntN(30)))
		}
		if !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) {
			out = append(out, x, -x)
		}
	}
	return out
}

// TestNeighbours: the result is the largest number of the format that is not
// beyond x in magnitude or the next one, never infinite, and more random bits
// never round down what fewer round up.
func TestNeighbours(t *testing.T) {
	for _, f := range formats {
		for _, x := range numbers(200_000, 1) {
			low, high := f.round(x, 0), f.round(x, ^uint32(0))
			a, lower, upper := math.Abs(float64(x)), math.Abs(f.meaning(low)), math.Abs(f.meaning(high))
			switch {
			case low>>15 != high>>15 || low>>15 != uint16(math.Float32bits(x)>>31):
				t.Fatalf("%s: %v changes sign: %#04x, %#04x", f.name, x, low, high)
			case upper > f.largest:
				t.Fatalf("%s: %v becomes %v", f.name, x, upper)
			case a >= f.largest:
				if lower != f.largest || upper != f.largest {
					t.Fatalf("%s: %v becomes %v or %v, want the largest number %v", f.name, x, lower, upper, f.largest)
				}
			case lower > a || math.Abs(f.meaning(low+1)) <= a:
				t.Fatalf("%s: %v rounded down is %v", f.name, x, lower)
			// 32 random bits reach the next number unless x is closer than 2^-32
			// of the distance to the lower one.
			case high != low && high != low+1, lower != a && high == low && a-lower > math.Ldexp(math.Abs(f.meaning(low+1))-lower, -16):
				t.Fatalf("%s: %v between %v and %v is rounded up to %v", f.name, x, lower, math.Abs(f.meaning(low+1)), upper)
			}
		}
	}
}

// TestMeanIsExact goes through the random numbers at equal distances: as many
// round up as make the mean x.
func TestMeanIsExact(t *testing.T) {
	for _, f := range formats {
		n := 1 << f.dropped
		for _, x := range numbers(200, 2) {
			a := math.Abs(float64(x))
			if a >= f.largest {
				continue
			}
			sum := 0.0
			for i := range n {
				sum += f.meaning(f.round(x, uint32(i)<<(32-f.dropped)))
			}
			mean := sum / float64(n)
			// Below the least normal float16 the dropped bits are more, and these
			// random numbers tell 2^-13 of the spacing 2^-24.
			tolerance := 0.0
			if f.name == "float16" && a < math.Ldexp(1, -14) {
				tolerance = math.Ldexp(1, -24-int(f.dropped))
			}
			if math.Abs(mean-float64(x)) > tolerance {
				t.Errorf("%s: the mean of %v rounded is %v", f.name, x, mean)
			}
		}
	}
}

// TestSmallestNumbersAreNotLost: below half of the smallest float16 number
// rounding to the nearest would leave nothing.
func TestSmallestNumbersAreNotLost(t *testing.T) {
	x := float32(math.Ldexp(1, -34)) // a 1,024th of it
	up := 0
	for i := range 1 << 16 {
		if Float16(x, uint32(i)<<16) == 1 {
			up++
		}
	}
	if up != 1<<6 {
		t.Errorf("%d of %d round up, want %d", up, 1<<16, 1<<6)
	}
}

func TestNotFinite(t *testing.T) {
	for _, f := range formats {
		for _, random := range []uint32{0, ^uint32(0)} {
			for _, sign := range []int{1, -1} {
				if x := f.widen(f.round(float32(math.Inf(sign)), random)); !math.IsInf(float64(x), sign) {
					t.Errorf("%s: infinity becomes %v", f.name, x)
				}
			}
			for _, b := range []uint32{0x7f800001, 0x7fc00000, 0xffffffff} {
				if x := f.widen(f.round(math.Float32frombits(b), random)); !math.IsNaN(float64(x)) {
					t.Errorf("%s: NaN %#x becomes %v", f.name, b, x)
				}
			}
		}
	}
}
