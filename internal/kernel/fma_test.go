package kernel

import (
	"math"
	"math/big"
	"testing"
)

// exactFMA computes a*b + c without error in big.Float and rounds once.
func exactFMA(a, b, c float32) float32 {
	x, y, z := float64(a), float64(b), float64(c)
	if sum := x*y + z; math.IsInf(sum, 0) || sum != sum || sum == 0 {
		return float32(sum) // Inf, NaN, and the signs of zero; a zero sum is exact
	}
	// 1024 bits hold any sum: exponents reach from 2^-298 to 2^256.
	p := new(big.Float).SetPrec(1024).SetFloat64(x)
	p.Mul(p, new(big.Float).SetPrec(1024).SetFloat64(y))
	p.Add(p, new(big.Float).SetPrec(1024).SetFloat64(z))
	f, _ := p.Float32()
	return f
}

// rounds returns n, or a tenth of it in short mode.
func rounds(n int) int {
	if testing.Short() {
		n /= 10
	}
	return n
}

func checkFMA(t *testing.T, a, b, c float32) {
	t.Helper()
	if got, want := FMA(a, b, c), exactFMA(a, b, c); !sameBits(got, want) {
		t.Fatalf("FMA(%x, %x, %x) = %x, want %x", a, b, c, got, want)
	}
}

func TestFMASpecials(t *testing.T) {
	for _, a := range specials {
		for _, b := range specials {
			for _, c := range specials {
				checkFMA(t, a, b, c)
			}
		}
	}
}

func TestFMARandom(t *testing.T) {
	r := seeded(t, 1)
	for range rounds(100_000) {
		checkFMA(t, math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()))
		checkFMA(t, float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64()))
	}
}

// Products that nearly reach the midpoint of two neighbours of c, normal and
// denormal, from both sides: rounding twice errs here.
func TestFMAMidpoints(t *testing.T) {
	r := seeded(t, 2)
	twice := 0
	for range rounds(200_000) {
		c := math.Float32frombits(r.Uint32() &^ (1 << 30)) // below 2
		if r.IntN(2) == 0 {
			c = math.Float32frombits(r.Uint32() & 0x80ffffff) // denormal or nearly so
		}
		next := math.Nextafter32(c, float32(math.Inf(1-2*r.IntN(2))))
		half := (float64(next) - float64(c)) / 2 // exact in float64
		// a*b is half a unit, or so little more or less that float64 loses it.
		a := float32(1 + float64(r.IntN(3)-1)*0x1p-23*float64(r.IntN(4)))
		b := float32(1 + float64(r.IntN(3)-1)*0x1p-23*float64(r.IntN(4)))
		_, e := math.Frexp(half)
		sign := math.Copysign(1, half)
		a = float32(math.Ldexp(float64(a)*sign, e/2))
		b = float32(math.Ldexp(float64(b), e-1-e/2))
		checkFMA(t, a, b, c)
		if !sameBits(float32(float64(a)*float64(b)+float64(c)), FMA(a, b, c)) {
			twice++
		}
	}
	if twice == 0 {
		t.Error("no case in which rounding twice errs: the test proves nothing")
	}
	t.Logf("rounding twice would have erred %d times", twice)
}

func FuzzFMA(f *testing.F) {
	f.Add(uint32(0x3f800000), uint32(0x33800000), uint32(0x3f800001))
	f.Add(uint32(0x00000001), uint32(0x3f000001), uint32(0x00000002))
	f.Add(uint32(0x7f7fffff), uint32(0x40000000), uint32(0xff7fffff))
	f.Fuzz(func(t *testing.T, a, b, c uint32) {
		checkFMA(t, math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c))
	})
}
