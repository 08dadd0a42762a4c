package hashes

import (
	"fmt"
	"testing"
)

// TestKeyIsForEver holds keys fixed: saved models are addressed by them. The
// values come from an implementation of the formula in another language.
func TestKeyIsForEver(t *testing.T) {
	for _, c := range []struct {
		space, value string
		want         uint64
	}{
		{"", "", 0x6d40285dde3c72d6},
		{"C1", "", 0xd52f95ddcd478b82},
		{"C1", "68fd1e64", 0xf543221dd275f9d3},
		{"C2", "68fd1e64", 0xb1ea922bc4d1cbb9},
		{"features", "17", 0xf25693fdafe6fe4d},
		{"名前", "äöü", 0x5d509b4ce82b7acd},
		{"query", "a value that is longer than the thirty-two bytes of a stripe", 0xf0945cedc1794327},
	} {
		if got := Key(c.space, []byte(c.value)); got != c.want {
			t.Errorf("Key(%q, %q) = %#016x, want %#016x", c.space, c.value, got, c.want)
		}
	}
}

// TestKeyBitsAreEven looks for bits of keys that depend on the input: each must
// be set in about half of the keys of a small space.
func TestKeyBitsAreEven(t *testing.T) {
	const n = 20_000
	var ones [64]int
	for i := range n {
		k := Key("C1", fmt.Append(nil, i))
		for b := range ones {
			ones[b] += int(k >> b & 1)
		}
	}
	for b, got := range ones {
		// Six standard deviations of n/2.
		if d := got - n/2; d*d > 36*n/4 {
			t.Errorf("bit %d is set in %d of %d keys", b, got, n)
		}
	}
}

func TestUnit(t *testing.T) {
	const n = 20_000
	below := 0
	for i := range uint64(n) {
		x := Unit(7, Sampling, 0, i)
		if !(x >= 0 && x < 1) {
			t.Fatalf("Unit = %v", x)
		}
		if x < 0.3 {
			below++
		}
	}
	if d := below - 3*n/10; d*d > 36*n*21/100 {
		t.Errorf("%d of %d numbers are below 0.3", below, n)
	}
	if Unit(7, Sampling, 0, 1) == Unit(7, Shuffle, 0, 1) ||
		Unit(7, Sampling, 0, 1) == Unit(8, Sampling, 0, 1) ||
		Unit(7, Sampling, 0, 1) == Unit(7, Sampling, 1, 1) {
		t.Error("seed, purpose or stream does not matter")
	}
}
