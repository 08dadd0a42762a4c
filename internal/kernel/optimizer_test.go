package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// optimizers take steps with values, gradients and two kinds of state.
var optimizers = []struct {
	name   string
	states int // of the two that it has
	step   func(w, g, s, t []float32)
}{
	{"SGD", 0, func(w, g, _, _ []float32) { (&SGD{L2: 1e-3, Rate: 0.3}).Step(w, g) }},
	{"Momentum", 1, func(w, g, s, _ []float32) { (&Momentum{L2: 1e-3, Rate: 0.3, Momentum: 0.9}).Step(w, g, s) }},
	{"Adagrad", 1, func(w, g, s, _ []float32) { (&Adagrad{L2: 1e-3, Rate: 0.3, Epsilon: 1e-8}).Step(w, g, s) }},
	{"Adam", 2, func(w, g, s, t []float32) {
		(&Adam{L2: 1e-3, Rest1: 0.1, Beta2: 0.999, Rest2: 1e-3, Size: 2e-3, Scale: 0.4, Epsilon: 1e-8}).Step(w, g, s, t)
	}},
}

// TestOptimizers compares the levels. That the portable one is right, the tests of package
// optim show.
func TestOptimizers(t *testing.T) {
	r := seeded(t, 21)
	for _, o := range optimizers {
		for n := range 70 {
			at := r.IntN(9) // somewhere in a vector, with something around
			var x [4][]float32
			for i := range x {
				x[i] = anything(r, make([]float32, at+n+3))
			}
			if n%2 == 0 {
				for i := range x {
					ordinary(r, x[i])
				}
			}
			run := func(level string) (y [4][]float32) {
				for i := range x {
					y[i] = slices.Clone(x[i])
				}
				atLevel(t, level, func() { o.step(y[0][at:at+n], y[1][at:at+n], y[2][at:at+n], y[3][at:at+n]) })
				return y
			}
			want := run("portable")
			for _, level := range Levels()[1:] {
				got := run(level)
				for i, what := range []string{"values", "gradient", "first state", "second state"} {
					wantSame(t, fmt.Sprintf("%s of %d at %s: %s", o.name, n, level, what), want[i], got[i])
				}
			}
		}
	}
}

// TestFTRLOfTinyRates checks that steps with a learning rate that falls to 0 leave numbers finite,
// whatever the gradients so far, and that those with a tiny rate leave values as they are.
func TestFTRLOfTinyRates(t *testing.T) {
	for alpha := float32(1); ; alpha /= 2 {
		w, g := []float32{0, 0.5, -3, 0, 0.25}, []float32{0.1, -0.2, 0.3, 4, 1e15}
		z, n := []float32{0, 0, 0, 10, 0}, []float32{0, 1e-6, 100, 1e20, 1e10}
		before := slices.Clone(w)
		(&FTRL{Alpha: alpha, Beta: 1, Lambda1: 1e-3}).Step(w, g, z, n)
		for i := range w {
			for _, x := range []float32{w[i], z[i], n[i]} {
				if x-x != 0 {
					t.Errorf("alpha %g: value %d is %g, its z %g and its n %g", alpha, i, w[i], z[i], n[i])
				}
			}
			if alpha < 1e-10 && (w[i]-before[i] > 1e-10 || before[i]-w[i] > 1e-10) {
				t.Errorf("alpha %g: value %d is %g, was %g", alpha, i, w[i], before[i])
			}
		}
		if alpha == 0 {
			return
		}
	}
}

func BenchmarkOptimizers(b *testing.B) {
	const n = 1 << 13
	r := seeded(b, 1)
	var x [4][]float32
	for i := range x {
		x[i] = ordinary(r, make([]float32, n))
	}
	for i := range x[3] {
		x[2][i] *= x[2][i]
		x[3][i] *= x[3][i]
	}
	for _, o := range optimizers {
		for _, level := range Levels()[1:] {
			b.Run(o.name+"/"+level, func(b *testing.B) {
				atLevel(b, level, func() {
					for b.Loop() {
						o.step(x[0], x[1], x[2], x[3])
					}
					ReportLimits(b, b.N, Work{Threads: 1, Bytes: 4 * n * (3 + 2*o.states)})
				})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
			})
		}
	}
}

// Prefetch computes nothing, whatever it is asked for.
func TestPrefetch(t *testing.T) {
	x := make([]float32, 100)
	for n := range x {
		Prefetch(x[n:])
		Prefetch(x[:n])
	}
	Prefetch(nil)
}
