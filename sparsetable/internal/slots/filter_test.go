package slots

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The share of absent keys that pass the filters is as in the package's documentation, for 24 rows
// a slot, in every phase of a round of splits.
func TestFalsePositives(t *testing.T) {
	const (
		seed   = 5
		rows   = 24
		base   = 1 << 15 // slots when a round begins
		stages = 4
		probes = 100_000
	)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, tc := range []struct {
		filterBytes, k int
		want, slack    float64
	}{{16, 3, .104, .05}, {24, 4, .039, .08}, {32, 5, .016, .1}, {48, 5, .0034, .15}, {64, 5, .0010, .3}} {
		passed, worst := 0, 0.0
		for stage := range stages {
			// Stages are even in the logarithm of the size: a table grows by factors.
			n := math.Exp2(float64(stage)/stages) * base
			if testing.Short() {
				n /= 8
			}
			x := filled(t, Options{FilterBytes: tc.filterBytes}, int64(n)*rows)
			if x.filter.probes != tc.k {
				t.Fatalf("filters of %d bytes: %d probes, want %d", tc.filterBytes, x.filter.probes, tc.k)
			}
			here := 0
			for range probes {
				h := Hash(1<<40 + rng.Uint64N(1<<40))
				if x.MayContain(x.Slot(h), h) {
					here++
				}
			}
			passed += here
			worst = max(worst, float64(here)/probes)
		}
		got := float64(passed) / (probes * stages)
		t.Logf("%d bytes, %.1f bits a key, %d probes: %.3f %% pass, at worst %.3f %%", tc.filterBytes, float64(8*tc.filterBytes)/rows, tc.k, 100*got, 100*worst)
		if math.Abs(got-tc.want) > tc.slack*tc.want {
			t.Errorf("filters of %d bytes let %.4f of absent keys through, want %.4f", tc.filterBytes, got, tc.want)
		}
	}
}

// A filter that is set anew has its new keys and no longer has the old ones.
func TestSetFilter(t *testing.T) {
	x := newIndex(t, Options{FilterBytes: 64})
	old, now := []uint64{Hash(1), Hash(2)}, []uint64{Hash(3)}
	x.SetFilter(0, old)
	x.SetFilter(0, now)
	x.Add(0, Hash(4))
	for k, want := range []bool{1: false, 2: false, 3: true, 4: true} {
		if k > 0 && x.MayContain(0, Hash(uint64(k))) != want {
			t.Errorf("key %d: %v", k, !want)
		}
	}
	x.ResetFilter(0)
	if x.MayContain(0, Hash(3)) {
		t.Error("a reset filter holds a key")
	}
}
