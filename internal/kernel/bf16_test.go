package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// withPairs runs a function with the processor's instruction for bfloat16 or without it,
// whichever is faster; nil where it has none.
var withPairs func(uses bool, f func())

// nearDenormal fills x with numbers whose products lie around the smallest normal float32,
// and with whatever anything draws.
func nearDenormal(r *rand.Rand, x []float32) []float32 {
	anything(r, x)
	for i := range x {
		if r.IntN(3) > 0 {
			x[i] = float32(math.Ldexp(1+float64(r.IntN(256))/128, -64+r.IntN(4)))
			if r.IntN(2) == 0 {
				x[i] = -x[i]
			}
		}
	}
	return x
}

// TestGemmBF16: at every level, with the processor's instruction for bfloat16 and without,
// on several threads, by a Scratch and with a packed B, products are those of the
// definition, also where numbers are denormal, infinite or NaN.
func TestGemmBF16(t *testing.T) {
	r := seeded(t, 9)
	sizes := []int{0, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 27, 31, 32, 33, 47, 65, 260}
	size := func() int { return sizes[r.IntN(len(sizes))] }
	defer SetThreads(0)
	var scratch Scratch
	var packed PackedB
	for i := range rounds(200) {
		m, n, k := size(), size(), size()
		if i%40 == 0 {
			m, n, k = 1+r.IntN(20), 1+r.IntN(40), 769+r.IntN(1000) // several blocks
		}
		fill := []func(*rand.Rand, []float32) []float32{ordinary, anything, nearDenormal}[r.IntN(3)]
		p := newProblem(r, r.IntN(4), m, n, k, 5, fill)
		e := new(Epilogue)
		if r.IntN(2) == 0 {
			e = newEpilogue(r, m, n)
		}
		product := func(f func(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int), what string, want []float32) []float32 {
			t.Helper()
			c := append([]float32(nil), p.c...)
			f(p.transA, p.transB, m, n, k, p.a, p.lda, p.b, p.ldb, p.accumulate, e, c, p.ldc)
			if want != nil {
				wantSame(t, fmt.Sprintf("%s, %v, %+v", what, p, *e), want, c)
			}
			return c
		}
		var want []float32
		atLevel(t, "portable", func() { want = product(GemmBF16, "", nil) })
		forms := func(level string) {
			for threads := 1; threads <= 3; threads++ {
				SetThreads(threads)
				product(GemmBF16, fmt.Sprintf("%s, %d threads", level, threads), want)
			}
			product(scratch.GemmBF16, level+", scratch", want)
			packed.PackBF16(p.transB, k, n, p.b, p.ldb)
			c := append([]float32(nil), p.c...)
			scratch.GemmPacked(p.transA, m, p.a, p.lda, &packed, p.accumulate, e, c, p.ldc)
			wantSame(t, fmt.Sprintf("%s, packed, %v, %+v", level, p, *e), want, c)
		}
		for _, level := range Levels() {
			atLevel(t, level, func() { forms(level) })
		}
		if withPairs != nil {
			withPairs(true, func() { forms("with the instruction") })
			withPairs(false, func() { forms("without the instruction") })
		}
	}
}

// fmaFlush is held against exact arithmetic: round the exact sum to 24 bits without
// bounds of the exponent, then take what is below the normal numbers as zero.
func TestFMAFlush(t *testing.T) {
	r := seeded(t, 10)
	for range 200000 {
		var x [3]float32
		if r.IntN(2) == 0 {
			nearDenormal(r, x[:])
		} else {
			anything(r, x[:])
		}
		a, b, c := RoundBF16(x[0]), RoundBF16(x[1]), x[2]
		if r.IntN(2) == 0 && a*b != 0 {
			// A sum next to the smallest normal number.
			c = 0x1p-126 - a*b
		}
		got := fmaFlush(a, b, c)
		f := flush(c)
		p, q := float64(a)*float64(b), float64(f)
		if s := p + q; math.IsInf(s, 0) || s != s || s == 0 {
			if want := float32(s); !sameBits(want, got) {
				t.Fatalf("fmaFlush(%x, %x, %x) = %x, want %x", a, b, c, got, want)
			}
			continue
		}
		exact := new(big.Float).SetPrec(2000).Add(big.NewFloat(p).SetPrec(2000), big.NewFloat(q).SetPrec(2000))
		rounded, _ := new(big.Float).SetPrec(24).SetMode(big.ToNearestEven).Set(exact).Float64()
		want := float32(rounded)
		if math.Abs(rounded) < 0x1p-126 {
			want = float32(math.Copysign(0, rounded))
		}
		if !sameBits(want, got) {
			t.Fatalf("fmaFlush(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
}

func TestRoundBF16(t *testing.T) {
	for x, want := range map[float32]float32{
		1: 1, 0x1.01p0: 0x1.00p0, 0x1.02p0: 0x1.02p0, 0x1.03p0: 0x1.04p0, 0x1.010002p0: 0x1.02p0, -0x1.03p0: -0x1.04p0,
		0x1p-126: 0x1p-126, 0x1.fffffcp-127: 0, math.MaxFloat32: float32(math.Inf(1)), float32(math.Inf(-1)): float32(math.Inf(-1)),
	} {
		if got := RoundBF16(x); !sameBits(want, got) {
			t.Errorf("RoundBF16(%x) = %x, want %x", x, got, want)
		}
	}
	if x := RoundBF16(math.Float32frombits(0x7f800001)); x == x {
		t.Errorf("RoundBF16 of a NaN is %x", x)
	}
	if x := RoundBF16(-0x1p-130); math.Float32bits(x) != 1<<31 {
		t.Errorf("RoundBF16 of a negative denormal number is %x", x)
	}
}

// Bits of a product in bfloat16 that must be the same on every machine and for ever.
func TestGemmBF16KeepsItsBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))  // the digest is of these numbers
	h := uint64(14695981039346656037) // FNV-1a
	for transposed := range 4 {
		p := newProblem(r, transposed, 37, 45, 401, 0, func(r *rand.Rand, x []float32) []float32 {
			for i := range x {
				x[i] = float32(int32(r.Uint32())) * 0x1p-31
			}
			return x
		})
		GemmBF16(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, nil, p.c, p.ldc)
		for _, v := range p.c {
			h = (h ^ uint64(math.Float32bits(v))) * 1099511628211
		}
	}
	if want := uint64(0xe4c1f648133c02b); h != want {
		t.Errorf("the digest is %#x, want %#x", h, want)
	}
}
