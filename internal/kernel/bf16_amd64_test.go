package kernel

import (
	"math"
	"testing"
)

func init() {
	if !hasBF16() {
		return
	}
	withoutBF16 = func(f func()) {
		before := hasBF16
		hasBF16 = func() bool { return false }
		defer func() { hasBF16 = before }()
		f()
	}
}

// The conversions in AVX2 are RoundBF16.
func TestBF16Conversions(t *testing.T) {
	if Level() == "portable" {
		t.Skip("no AVX2")
	}
	r := seeded(t, 11)
	for range 300 {
		n := 2 * (1 + r.IntN(40))
		src, other := anything(r, make([]float32, n)), anything(r, make([]float32, n))
		if r.IntN(2) == 0 {
			for i := range src {
				src[i] = math.Float32frombits(r.Uint32()>>1&0x00ffffff | r.Uint32()&1<<31) // small
			}
		}
		check := func(what string, want, got []float32) {
			t.Helper()
			for i := range want {
				if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
					t.Fatalf("%s: element %d is %08x, want %08x", what, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
				}
			}
		}
		want, got := make([]float32, n), make([]float32, n)
		for i := range want {
			want[i] = RoundBF16(src[i])
		}
		roundBF16(got, src)
		check("roundBF16", want, got)
		for i := range want {
			want[i] = RoundBF16(src[i^1])
		}
		swapBF16(got, src)
		check("swapBF16", want, got)
		for i := range want {
			want[i] = pairBF16(src[i], other[i])
		}
		pairsBF16Rows(got, src, other)
		check("pairsBF16Rows", want, got)
		want, got = want[:n/2], got[:n/2]
		for i := range want {
			want[i] = pairBF16(src[2*i], src[2*i+1])
		}
		pairsBF16(got, src)
		check("pairsBF16", want, got)
	}
}

// The check of the instruction finds kernels that round in another way, and leaves the level
// as it is.
func TestAgrees(t *testing.T) {
	for _, name := range Levels()[1:] {
		l, err := findLevel(name)
		if err != nil {
			t.Fatal(err)
		}
		before := Level()
		if !agrees(l, elementsBF16, elementsBF16) {
			t.Errorf("%s: the kernels do not agree with themselves", name)
		}
		if agrees(l, elementsFloat, elementsBF16) {
			t.Errorf("%s: products in float32 are taken for those in bfloat16", name)
		}
		if Level() != before {
			t.Errorf("the level was %s and is %s", before, Level())
		}
	}
}
