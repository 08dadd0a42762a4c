package optim

import (
	"math"
	"testing"
)

func TestInitIsNormal(t *testing.T) {
	init := NewInit(7, 0.02)
	row := make([]float32, 10)
	var n, sum, sq, cube, fourth, lag float64
	beyond := 0.0
	for key := range uint64(20000) {
		init(key, row)
		for i, v := range row {
			x := float64(v) / 0.02
			n++
			sum += x
			sq += x * x
			cube += x * x * x
			fourth += x * x * x * x
			if math.Abs(x) > 1.96 {
				beyond++
			}
			if i > 0 {
				lag += x * float64(row[i-1]) / 0.02
			}
		}
	}
	for name, v := range map[string][2]float64{
		"mean": {sum / n, 0}, "variance": {sq / n, 1}, "skewness": {cube / n, 0}, "kurtosis": {fourth / n, 2.85},
		"share beyond 1.96": {beyond / n, 0.05}, "correlation of neighbours": {lag / n, 0},
	} {
		if math.Abs(v[0]-v[1]) > 0.03 { // some 5 standard errors of the kurtosis
			t.Errorf("%s is %.4f, want %.4f", name, v[0], v[1])
		}
	}
}

func TestInitDependsOnSeedAndKeyAlone(t *testing.T) {
	a, b, c := make([]float32, 8), make([]float32, 8), make([]float32, 8)
	NewInit(1, 1)(42, a)
	f := NewInit(1, 1)
	f(41, b)
	f(42, b)
	NewInit(2, 1)(42, c)
	same := 0
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("value %d: %v and %v for the same seed and key", i, a[i], b[i])
		}
		if a[i] == c[i] {
			same++
		}
	}
	if same == len(a) {
		t.Error("the seed makes no difference")
	}
	f(43, c)
	if a[0] == c[0] {
		t.Error("the key makes no difference")
	}
	short := make([]float32, 3)
	f(42, short)
	if short[2] != a[2] {
		t.Error("the length of the row makes a difference")
	}
}

// TestInitBits pins the values: a model trained with one version must be
// reproduced by the next.
func TestInitBits(t *testing.T) {
	got := make([]float32, 4)
	NewInit(1, 0.01)(0x123456789abcdef0, got)
	want := []uint32{0x3bc94e21, 0xbc25ce53, 0xbc770a4c, 0xbbf73a1d}
	for i := range got {
		if math.Float32bits(got[i]) != want[i] {
			t.Errorf("value %d: %v, bits %#x", i, got[i], math.Float32bits(got[i]))
		}
	}
}
