package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"aibox/internal/testseed"
)

// seeded returns one of the generators that the seed of a test gives.
func seeded(t testing.TB, which uint64) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(testseed.Of(t), which))
}

// specials are values at which float32 arithmetic has its corners.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 2, 3, -1.5,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-148, 3 * 0x1p-149,
	0x1p-126, -0x1p-126, 0x1.fffffcp-127, 0x1p-127, 0x1.000002p-126,
	0x1p-75, 0x1p-74, 0x1.8p-75, 0x1.000002p0, 0x1.fffffep-1, 0x1p-24, 0x1p-25, 0x1.000002p-25,
	0x1p23, 0x1p24, 0x1.000002p24, 0x1p63, 0x1p64, 0x1p127,
	math.MaxFloat32, -math.MaxFloat32, 0x1.fffffcp127,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// ordinary fills x with normally distributed numbers.
func ordinary(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// anything fills x with random bits and special values.
func anything(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		switch r.IntN(4) {
		case 0:
			x[i] = specials[r.IntN(len(specials))]
		case 1:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = float32(r.NormFloat64())
		}
	}
	return x
}

// sameBits tells whether two numbers have the same bits or are both NaN.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// wantSame fails the test at the first element where got differs from want.
func wantSame(t testing.TB, what string, want, got []float32) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !sameBits(want[i], got[i]) {
			t.Fatalf("%s: element %d is %x (%08x), want %x (%08x)", what, i,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// atLevel runs f with the level set to name.
func atLevel(t testing.TB, name string, f func()) {
	t.Helper()
	before := Level()
	if err := SetLevel(name); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := SetLevel(before); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
