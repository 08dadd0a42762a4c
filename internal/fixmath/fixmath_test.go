package fixmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps is the distance of got from want in units of want's last place.
func ulps(got, want float64) float64 {
	if got == want || (got != got && want != want) {
		return 0
	}
	a := math.Abs(want)
	return math.Abs(got-want) / (math.Nextafter(a, math.Inf(1)) - a)
}

func TestAgainstPackageMath(t *testing.T) {
	const seed = 20240501
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	uniform := func(lo, hi float64) func() float64 {
		return func() float64 { return lo + (hi-lo)*rng.Float64() }
	}
	powers := func(lo, hi float64) func() float64 {
		return func() float64 { return math.Exp2(lo + (hi-lo)*rng.Float64()) }
	}
	signed := func(f func() float64) func() float64 {
		return func() float64 { return math.Copysign(f(), rng.Float64()-0.5) }
	}
	// package math itself is within 1 ulp; its logarithm on amd64 is wrong for
	// subnormal numbers, which TestEdges therefore looks at.
	cases := []struct {
		name      string
		got, want func(float64) float64
		draw      func() float64
		limit     float64
	}{
		{"exp", Exp, math.Exp, uniform(-708, 709), 3},
		{"exp small", Exp, math.Exp, signed(powers(-60, 1)), 3},
		{"expm1", Expm1, math.Expm1, signed(powers(-60, 6)), 7},
		{"expm1 by exp", Expm1, math.Expm1, signed(uniform(0.35, 0.75)), 7},
		{"log", Log, math.Log, powers(-1022, 1020), 3},
		{"log near 1", Log, math.Log, uniform(0.5, 2), 3},
		{"log1p", Log1p, math.Log1p, powers(-60, 60), 5},
		{"log1p negative", Log1p, math.Log1p, func() float64 { return -powers(-60, 0)() }, 5},
	}
	for _, c := range cases {
		worst, at := 0.0, 0.0
		for range 200_000 {
			x := c.draw()
			if d := ulps(c.got(x), c.want(x)); !(d <= worst) {
				worst, at = d, x
			}
		}
		if !(worst <= c.limit) {
			t.Errorf("%s: %.1f ulp at %v (%v, want %v)", c.name, worst, at, c.got(at), c.want(at))
		}
	}
}

func TestNormalQuantile(t *testing.T) {
	for _, u := range []float64{1e-300, 1e-100, 1e-20, 1e-11, 1e-9, 1e-5, 0.01, 0.0749, 0.0751, 0.2, 0.5, 0.7, 0.925, 0.99, 1 - 1e-9} {
		x := NormalQuantile(u)
		// The distribution function at x must give u back.
		back := 0.5 * math.Erfc(-x/math.Sqrt2)
		// d log(cdf)/dx is about -x in the tail, so x's rounding shows as x^2 eps.
		if tol := 1e-15 * (4 + x*x); math.Abs(back-u) > tol*u && math.Abs(back-u) > 2e-16 {
			t.Errorf("quantile of %g is %g, whose distribution function is %g", u, x, back)
		}
	}
	if !math.IsInf(NormalQuantile(0), -1) || !math.IsInf(NormalQuantile(1), 1) {
		t.Error("quantiles of 0 and 1 are not infinite")
	}
}

func TestEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"exp inf", Exp(inf), inf}, {"exp -inf", Exp(-inf), 0}, {"exp nan", Exp(nan), nan},
		{"exp 0", Exp(0), 1}, {"exp 710", Exp(710), inf}, {"exp -746", Exp(-746), 0},
		{"exp max", Exp(709.7), math.Exp(709.7)}, {"exp subnormal", Exp(-740), math.Exp(-740)},
		{"log subnormal", Log(0x1p-1070), -1070 * math.Ln2}, {"log 0", Log(0), -inf}, {"log -1", Log(-1), nan}, {"log inf", Log(inf), inf}, {"log 1", Log(1), 0},
		{"log1p -1", Log1p(-1), -inf}, {"log1p -2", Log1p(-2), nan}, {"log1p inf", Log1p(inf), inf}, {"log1p 0", Log1p(0), 0},
		{"sigmoid 0", Sigmoid(0), 0.5}, {"sigmoid 1000", Sigmoid(1000), 1}, {"sigmoid -1000", Sigmoid(-1000), 0},
		{"softplus 1000", Softplus(1000), 1000}, {"softplus -1000", Softplus(-1000), 0}, {"softplus 0", Softplus(0), math.Ln2},
		{"entropy 0", Entropy(0), 0}, {"entropy 1", Entropy(1), 0}, {"entropy half", Entropy(0.5), math.Ln2},
	} {
		if ulps(c.got, c.want) > 2 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestGolden fixes bits: a processor or compiler on which they differ breaks
// the promise of this package.
func TestGolden(t *testing.T) {
	h := uint64(0)
	for i := range 20_000 {
		x := (float64(i) - 9_999.5) / 97
		for _, y := range []float64{Exp(x), Expm1(x), Log(math.Abs(x)), Log1p(math.Abs(x)), Sigmoid(x), Softplus(x), NormalQuantile(float64(i+1) / 20_001)} {
			h = (h ^ math.Float64bits(y)) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
	}
	const want = 0x296d14de5e2b1268
	if h != want {
		t.Errorf("digest of function values is %#x, want %#x", h, uint64(want))
	}
}

func BenchmarkSoftplus(b *testing.B) {
	s := 0.0
	for i := range b.N {
		s += Softplus(float64(i&1023)/64 - 8)
	}
	_ = s
}

func BenchmarkNormalQuantile(b *testing.B) {
	s := 0.0
	for i := range b.N {
		s += NormalQuantile((float64(i&1023) + 0.5) / 1024)
	}
	_ = s
}
