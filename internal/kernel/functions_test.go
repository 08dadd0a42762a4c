package kernel

import (
	"math"
	"slices"
	"testing"
)

var functions = []struct {
	name  string
	f     func(float32) float32
	slice func(dst, src []float32)
	want  func(float64) float64
}{
	{"Exp", Exp, nil, math.Exp},
	{"Log", Log, nil, math.Log},
	{"Sigmoid", Sigmoid, SigmoidSlice, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"Tanh", Tanh, TanhSlice, math.Tanh},
	{"Softplus", Softplus, SoftplusSlice, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
}

// ulp returns the distance of neighbouring float32 at x.
func ulp(x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e-24, -149))
}

// The errors promised are checked over every 10007th float32 and densely where
// the functions bend.
func TestFunctionsAccuracy(t *testing.T) {
	for _, f := range functions {
		worst, at := 0.0, float32(0)
		check := func(x float32) {
			got, want := f.f(x), f.want(float64(x))
			if w := float32(want); math.IsInf(want, 0) || want != want || math.IsInf(float64(w), 0) || want == 0 {
				if !sameBits(got, w) {
					t.Fatalf("%s(%x) = %x, want %x", f.name, x, got, w)
				}
				return
			}
			if err := math.Abs(float64(got)-want) / ulp(want); !(err <= worst) {
				worst, at = err, x
			}
		}
		stride := uint64(10007)
		if testing.Short() {
			stride = 100_003
		}
		for bits := uint64(0); bits < 1<<32; bits += stride {
			check(math.Float32frombits(uint32(bits)))
		}
		for x := float32(-110); x < 110; x += 0.00117 {
			check(x)
		}
		for x := float32(0.5); x < 2; x += 0.0000117 {
			check(x)
		}
		for _, x := range specials {
			check(x)
		}
		t.Logf("%s: largest error %.5f ulp, at %x", f.name, worst, at)
		if !(worst < 0.501) {
			t.Errorf("%s(%x) is wrong by %.4f ulp", f.name, at, worst)
		}
	}
}

// The float64 cores keep the errors that their comments state.
func TestCoresAccuracy(t *testing.T) {
	r := seeded(t, 7)
	for _, c := range []struct {
		name      string
		f, want   func(float64) float64
		low, high float64
		limit     float64
	}{
		{"exp64", exp64, math.Exp, -expLimit, expLimit, 0x1p-44},
		{"exp64", exp64, math.Exp, -1, 1, 0x1p-46},
		{"expm1_64", expm1_64, math.Expm1, 0, expLimit, 0x1p-44},
		{"expm1_64", expm1_64, math.Expm1, 0, 0.01, 0x1p-48},
		{"log1pReduced", log1pReduced, math.Log1p, math.Sqrt2/2 - 1, math.Sqrt2 - 1, 0x1p-48},
		{"log1p64", log1p64, math.Log1p, 0, 1, 0x1p-48},
	} {
		worst := 0.0
		for range 20_000 {
			x := c.low + (c.high-c.low)*r.Float64()
			want := c.want(x)
			if err := math.Abs(c.f(x)/want - 1); !(err <= worst) {
				worst = err
			}
		}
		t.Logf("%s on [%g, %g]: largest relative error 2^%.1f", c.name, c.low, c.high, math.Log2(worst))
		if !(worst < c.limit) {
			t.Errorf("%s on [%g, %g]: relative error %g, the limit is %g", c.name, c.low, c.high, worst, c.limit)
		}
	}
}

func TestFunctionsAtTheEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negativeZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want float32
	}{
		{"Exp", Exp, inf, inf}, {"Exp", Exp, -inf, 0}, {"Exp", Exp, nan, nan}, {"Exp", Exp, negativeZero, 1},
		{"Exp", Exp, 0x1.62e42ep6, 0x1.ffff08p127}, {"Exp", Exp, 0x1.62e43p6, inf},
		{"Exp", Exp, -103.97207, 0x1p-149}, {"Exp", Exp, -103.97209, 0}, {"Exp", Exp, -math.MaxFloat32, 0},
		{"Log", Log, inf, inf}, {"Log", Log, 0, -inf}, {"Log", Log, negativeZero, -inf}, {"Log", Log, -1, nan},
		{"Log", Log, -inf, nan}, {"Log", Log, nan, nan}, {"Log", Log, 1, 0}, {"Log", Log, 0x1p-149, -0x1.9d1dap6},
		{"Sigmoid", Sigmoid, inf, 1}, {"Sigmoid", Sigmoid, -inf, 0}, {"Sigmoid", Sigmoid, nan, nan}, {"Sigmoid", Sigmoid, 0, 0.5},
		{"Tanh", Tanh, inf, 1}, {"Tanh", Tanh, -inf, -1}, {"Tanh", Tanh, nan, nan}, {"Tanh", Tanh, negativeZero, negativeZero},
		{"Tanh", Tanh, 0x1p-149, 0x1p-149},
		{"Softplus", Softplus, inf, inf}, {"Softplus", Softplus, -inf, 0}, {"Softplus", Softplus, nan, nan},
		{"Softplus", Softplus, 0, 0x1.62e43p-1}, {"Softplus", Softplus, math.MaxFloat32, math.MaxFloat32},
	} {
		if got := c.f(c.x); !sameBits(got, c.want) {
			t.Errorf("%s(%x) = %x, want %x", c.name, c.x, got, c.want)
		}
	}
}

// A model trained today must be the one of yesterday: these bits never change.
func TestFunctionsKeepTheirBits(t *testing.T) {
	for _, f := range functions {
		h := uint64(14695981039346656037) // FNV-1a
		for bits := uint64(0); bits < 1<<32; bits += 200003 {
			y := f.f(math.Float32frombits(uint32(bits)))
			if y != y {
				continue // the payload of NaN is not promised
			}
			h = (h ^ uint64(math.Float32bits(y))) * 1099511628211
		}
		if want := functionDigests[f.name]; h != want {
			t.Errorf("%s has digest %#x, want %#x", f.name, h, want)
		}
	}
}

var functionDigests = map[string]uint64{
	"Exp":      0xe8c67d605a8936ca,
	"Log":      0xc51b6898a83f30fa,
	"Sigmoid":  0x8636de03b69a1f5f,
	"Tanh":     0xe6aced1b81e29868,
	"Softplus": 0x67fa1c92b3fb0b2f,
}

func TestFunctionsOnSlices(t *testing.T) {
	r := seeded(t, 1)
	for _, f := range functions {
		if f.slice == nil {
			continue
		}
		src := slices.Concat(specials, anything(r, make([]float32, 200_000)))
		for x := float32(-130); x < 130; x += 0.00913 {
			src = append(src, x)
		}
		want := make([]float32, len(src))
		for i, x := range src {
			want[i] = f.f(x)
		}
		for _, name := range Levels() {
			atLevel(t, name, func() {
				got := make([]float32, len(src))
				f.slice(got, src)
				wantSame(t, f.name+" at "+name, want, got)
				for n := range 40 {
					in := slices.Clone(src[n : 2*n+1])
					f.slice(in[:n], in[:n])
					wantSame(t, f.name+" in place at "+name, append(slices.Clone(want[n:2*n]), src[2*n]), in)
				}
			})
		}
	}
}
